import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Trash2 } from "lucide-react";
import { deletionOf, useChange } from "../../api/changes.ts";
import { post, remove } from "../../api/client.ts";
import { IconButton } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { UNDO_MS, useToast } from "../../ui/toast.tsx";
import { choiceOf } from "./choice.ts";
import { dropFromLists } from "./drop-from-lists.ts";

/** Deletes a message and goes back to the list; for half a minute that can be taken back. */
export function DeleteMessage({ message_id }: { message_id: string }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const search = choiceOf(useSearch({ strict: false }));
  const say = useToast();
  const erase = useChange({
    run: async () => {
      // What is under way would not be found any more.
      await queries.cancelQueries({ queryKey: ["story", message_id] });
      return remove(`/messages/${message_id}`);
    },
    touches: [["conversation"], ["conversations"]],
    key: deletionOf(message_id),
    done: async () => {
      dropFromLists(queries, [message_id]);
      await navigate({ to: "/", search });
      say(
        "The message is deleted.",
        async () => {
          await post(`/messages/${message_id}/restore`);
          await queries.invalidateQueries({ queryKey: ["messages"] });
        },
        UNDO_MS,
      );
    },
  });
  return (
    <>
      <IconButton label="Delete this message" busy={erase.isPending} onClick={() => erase.mutate()}>
        <Trash2 />
      </IconButton>
      <Fault error={erase.error} />
    </>
  );
}
