import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { contextList } from "../../api/lists.ts";
import type { Context, Inbox } from "../../api/shapes.ts";
import { Checkbox, Toggle } from "../../ui/field.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Card } from "../../ui/page.tsx";
import { useInboxChange } from "./use-inbox-change.ts";

/** The contexts of an inbox: those for every inbox and for this one, or those that are chosen here. */
export function InboxContexts({ inbox }: { inbox: Inbox }) {
  const change = useInboxChange(inbox);
  const { data: contexts = [] } = useQuery(contextList);
  const chosen = inbox.context_ids;
  const naming = contexts.filter(({ inbox_ids }) => inbox_ids?.includes(inbox.id));
  const toggle = (id: string, on: boolean): void =>
    change.mutate({
      context_ids: on ? [...(chosen ?? []), id] : (chosen ?? []).filter((other) => other !== id),
    });
  return (
    <Card title="Contexts">
      <div className="grid gap-3">
        <Toggle
          label="Those for every inbox"
          hint="Off: only the ones you choose here. Mail from strangers gets what is chosen here or is for this inbox, and never what is for every inbox."
          checked={chosen === null}
          disabled={change.isPending}
          onChange={(all) => change.mutate({ context_ids: all ? null : naming.map(({ id }) => id) })}
        />
        {contexts.length === 0 && <p className="text-soft">You have no context yet.</p>}
        {chosen === null && (
          <InUse contexts={contexts.filter((one) => one.inbox_ids === null || naming.includes(one))} />
        )}
        {chosen !== null &&
          contexts.map((context) => (
            <Checkbox
              key={context.id}
              label={nameAmong(contexts, context)}
              checked={chosen.includes(context.id)}
              onChange={(event) => toggle(context.id, event.target.checked)}
            />
          ))}
        <Fault error={change.error} />
      </div>
    </Card>
  );
}

/** The title of a context, with its short name where another one has the same title. */
export function nameAmong(contexts: Context[], { title, slug }: Context): string {
  return contexts.filter((one) => one.title === title).length > 1 ? `${title} (${slug})` : title;
}

function InUse({ contexts }: { contexts: Context[] }) {
  return (
    <ul className="grid max-h-72 gap-1 overflow-y-auto">
      {contexts.map((context) => (
        <li key={context.id} className="flex flex-wrap gap-x-2">
          <Link
            to="/contexts/$context_id"
            params={{ context_id: context.id }}
            className="min-w-0 truncate text-accent underline"
          >
            {nameAmong(contexts, context)}
          </Link>
          <span className="text-sm text-soft">
            {context.inbox_ids === null ? "for every inbox" : "for this inbox"}
            {!context.enabled && ", switched off"}
          </span>
        </li>
      ))}
    </ul>
  );
}
