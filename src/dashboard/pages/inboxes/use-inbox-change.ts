import { useChange } from "../../api/changes.ts";
import { patch } from "../../api/client.ts";
import { inboxList } from "../../api/lists.ts";
import type { Inbox } from "../../api/shapes.ts";
import { useToast } from "../../ui/toast.tsx";

/** What an inbox may be told; what is absent stays as it is. */
export type InboxChange = Partial<
  Pick<
    Inbox,
    | "label"
    | "default_connection_id"
    | "mcp_connection_ids"
    | "context_ids"
    | "reply_enabled"
    | "allowlist_senders"
    | "scope"
    | "inbound_policy"
    | "retention_days"
  >
>;

/** Changes an inbox, and offers to put back what it was. */
export function useInboxChange(inbox: Inbox) {
  const say = useToast();
  const touches = [inboxList.queryKey];
  const tell = (change: InboxChange) => patch<Inbox>(`/inboxes/${inbox.id}`, change);
  const back = useChange<InboxChange>({ run: tell, touches, done: () => say("It is as it was before.") });
  return useChange<InboxChange, InboxChange>({
    run: async (change) => {
      const members = Object.keys(change) as (keyof InboxChange)[];
      const before: InboxChange = Object.fromEntries(members.map((name) => [name, inbox[name]]));
      await tell(change);
      return before;
    },
    touches,
    done: (before) => say("Saved.", () => back.mutateAsync(before)),
  });
}
