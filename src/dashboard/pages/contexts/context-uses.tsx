import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useChange } from "../../api/changes.ts";
import { patch, post } from "../../api/client.ts";
import { contextList, inboxList } from "../../api/lists.ts";
import type { Context, Inbox } from "../../api/shapes.ts";
import { DeleteButton } from "../../ui/delete.tsx";
import { Card } from "../../ui/page.tsx";
import { useToast } from "../../ui/toast.tsx";
import { InboxLinks } from "../inboxes/inbox-links.tsx";

export function WhereUsed({ context }: { context: Context }) {
  const { data: inboxes } = useQuery(inboxList);
  if (!inboxes) return null;
  const { id: context_id, inbox_ids } = context;
  const uses = ({ id, context_ids: chosen }: Inbox): boolean =>
    chosen === null ? inbox_ids?.includes(id) !== false : chosen.includes(context_id);
  return (
    <Card title="Where it is used">
      {context.enabled ? (
        <InboxLinks inboxes={inboxes} uses={uses} tab="settings" />
      ) : (
        <p className="text-soft">Nowhere, as long as it is not in use.</p>
      )}
    </Card>
  );
}

/** Deletes a context; what is taken back gets its words, its short name and its inboxes again. */
export function DeleteContext({ context }: { context: Context }) {
  const { id, title, body, kind, slug, enabled, inbox_ids, version } = context;
  const navigate = useNavigate();
  const say = useToast();
  const { data: inboxes = [] } = useQuery(inboxList);
  const touches = [contextList.queryKey, inboxList.queryKey];
  const again = useChange({
    run: async () => {
      const made = await post<Context>("/contexts", { title, body, kind, slug, enabled, inbox_ids });
      for (const inbox of inboxes)
        if (inbox.context_ids?.includes(id))
          await patch(`/inboxes/${inbox.id}`, {
            context_ids: inbox.context_ids.map((one) => (one === id ? made.id : one)),
          });
    },
    touches,
  });
  return (
    <DeleteButton
      title="Delete this context?"
      act="Delete the context"
      path={`/contexts/${id}`}
      touches={touches}
      done={() => {
        say("The context is deleted.", () => again.mutateAsync());
        void navigate({ to: "/contexts", ignoreBlocker: true });
      }}
    >
      <p>Your inboxes will no longer know “{title}”.</p>
      {version > 1 && <p>What it said before is gone then too, and cannot be brought back.</p>}
    </DeleteButton>
  );
}
