import { useQueryClient } from "@tanstack/react-query";
import { CloudOff } from "lucide-react";
import { useCallback, useState } from "react";
import { askForLife, useGoOn, useIsReached } from "../api/reach.ts";
import { Button } from "../ui/button.tsx";

/** While nobody answers: what is on the page may be old. Once somebody does, it is read anew. */
export function OutOfReach() {
  const queries = useQueryClient();
  const is_reached = useIsReached();
  const [asking, setAsking] = useState(false);
  useGoOn(useCallback(() => void queries.invalidateQueries(), [queries]));
  const ask = async (): Promise<void> => {
    setAsking(true);
    await askForLife();
    setAsking(false);
  };
  return (
    <div role="status" className="sticky top-[3.25rem] z-[5] md:top-0">
      {!is_reached && (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-2 border-b border-line bg-warn-soft px-4 py-2 text-sm text-warn">
          <CloudOff aria-hidden className="size-4 shrink-0" />
          <p className="min-w-0 flex-1 basis-60">
            The server cannot be reached. What you see may be old, and what you write stays here. This page
            goes on by itself when the server answers.
          </p>
          <Button busy={asking} onClick={() => void ask()}>
            Try now
          </Button>
        </div>
      )}
    </div>
  );
}
