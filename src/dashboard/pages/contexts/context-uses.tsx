import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useChange } from "../../api/changes.ts";
import { get, patch, post } from "../../api/client.ts";
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
  const again = useChange<Inbox[]>({
    run: async (before) => {
      const made = await post<Context>("/contexts", { title, body, kind, slug, enabled, inbox_ids });
      for (const inbox of before) {
        const place = inbox.context_ids?.indexOf(id) ?? -1;
        if (place === -1) continue;
        // Read again: what was chosen there meanwhile stays chosen.
        const { context_ids } = await get<Inbox>(`/inboxes/${inbox.id}`);
        const others = context_ids?.filter((one) => one !== made.id);
        if (others) await patch(`/inboxes/${inbox.id}`, { context_ids: others.toSpliced(place, 0, made.id) });
      }
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
        say("The context is deleted.", () => again.mutateAsync(inboxes));
        void navigate({ to: "/contexts", ignoreBlocker: true });
      }}
    >
      <p>Your inboxes will no longer know “{title}”.</p>
      {version > 1 && <p>What it said before is gone then too, and cannot be brought back.</p>}
    </DeleteButton>
  );
}
