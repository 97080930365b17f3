import { useChange } from "../../api/changes.ts";
import { patch } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { Inbox, InboxChange } from "../../api/shapes.ts";
import { useToast } from "../../ui/toast.tsx";

/** Changes an inbox, and offers to undo that. */
export function useInboxChange(inbox: Inbox) {
  const say = useToast();
  const touches = [inboxList.queryKey];
  const tell = (change: InboxChange) => patch<Inbox>(`/inboxes/${inbox.id}`, change);
  const back = useChange<InboxChange>({ run: tell, touches, done: () => say("It is as it was before.") });
  return useChange<InboxChange, InboxChange>({
    run: async (change) => {
      // The version of what was there before is no version of what is to be undone.
      const { rules_version: _, ...changed } = change;
      const members = Object.keys(changed) as (keyof InboxChange)[];
      const before: InboxChange = Object.fromEntries(members.map((name) => [name, inbox[name]]));
      await tell(change);
      return before;
    },
    touches,
    done: (before) => say("Saved.", () => back.mutateAsync(before)),
  });
}
