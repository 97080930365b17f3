import type { QueryKey } from "@tanstack/react-query";
import { Trash2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useChange } from "../api/changes.ts";
import { remove } from "../api/client.ts";
import { Button } from "./button.tsx";
import { Confirm } from "./dialog.tsx";

interface DeleteButtonProps {
  /** The question, such as "Delete this inbox?". */
  title: string;
  /** The act itself, such as "Delete the inbox". */
  act: string;
  /** What is deleted, by its address. */
  path: string;
  touches: QueryKey[];
  /** Leaves the page of what is no more, before lists are read anew and it is missed. */
  done?: () => void;
  /** What will be gone, and what stays. */
  children: ReactNode;
}

/** Deletes a thing of the server, after asking once. */
export function DeleteButton({ title, act, path, touches, done, children }: DeleteButtonProps) {
  const [asked, setAsked] = useState(false);
  const erase = useChange({
    run: async () => {
      await remove(path);
      done?.();
    },
    touches,
  });
  return (
    <>
      <Button look="danger" icon={<Trash2 />} onClick={() => setAsked(true)}>
        {act.split(" ")[0]}
      </Button>
      {asked && (
        <Confirm
          title={title}
          act={act}
          busy={erase.isPending}
          error={erase.error}
          onConfirm={() => erase.mutate()}
          onClose={() => setAsked(false)}
        >
          {children}
        </Confirm>
      )}
    </>
  );
}
