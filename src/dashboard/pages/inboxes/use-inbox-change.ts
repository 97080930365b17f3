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

export function useInboxChange(inbox: Inbox) {
  const say = useToast();
  return useChange<InboxChange, Inbox>({
    run: (change) => patch<Inbox>(`/inboxes/${inbox.id}`, change),
    touches: [inboxList.queryKey],
    done: () => say("Saved."),
  });
}
