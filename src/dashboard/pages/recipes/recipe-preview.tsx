import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Check } from "lucide-react";
import { refuseChanged } from "../../api/changed-since.ts";
import { useChange } from "../../api/changes.ts";
import { get, post, remove } from "../../api/client.ts";
import { connectionList, contextList, inboxList, recipeList } from "../../api/lists.ts";
import type { AppliedRecipe, Context, Inbox, Recipe } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Form } from "../../ui/form.tsx";
import { Markdown } from "../../ui/markdown.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { providerOf } from "../connections/providers.ts";
import { KINDS } from "../contexts/kinds.ts";

const TOUCHES = [recipeList.queryKey, inboxList.queryKey, contextList.queryKey];

/** What a recipe would make, and after that what it has made. */
export function RecipePreview({ recipe, onClose }: { recipe: Recipe; onClose: () => void }) {
  const apply = useChange<void, AppliedRecipe>({
    run: () => post<AppliedRecipe>(`/recipes/${recipe.id}/apply`),
    touches: TOUCHES,
  });
  return (
    <Dialog title={recipe.title} onClose={onClose}>
      {apply.data ? (
        <Applied applied={apply.data} onClose={onClose} />
      ) : recipe.applied ? (
        <Had recipe={recipe} onClose={onClose} />
      ) : (
        <Form change={apply} act="Make it" onCancel={onClose} cancel="Not now">
          <p>{recipe.description}</p>
          <WillBeMade recipe={recipe} />
          <Needs requires={recipe.requires} />
        </Form>
      )}
    </Dialog>
  );
}

/** A recipe of which nothing is missing. */
function Had({ recipe, onClose }: { recipe: Recipe; onClose: () => void }) {
  const { data: inboxes } = useQuery(inboxList);
  const inbox = inboxes?.find(({ label }) => label === recipe.inbox.label);
  return (
    <div className="grid max-w-xl gap-4">
      <p>{recipe.description}</p>
      <Notice look="good">You have all of it already.</Notice>
      <WillBeMade recipe={recipe} />
      <Needs requires={recipe.requires} />
      <div className="flex flex-wrap items-center justify-between gap-2">
        {inbox && <InboxLink id={inbox.id} />}
        <Button onClick={onClose}>Close</Button>
      </div>
    </div>
  );
}

function InboxLink({ id }: Pick<Inbox, "id">) {
  return (
    <Link to="/inboxes/$inbox_id" params={{ inbox_id: id }} className="text-accent underline">
      Open the inbox and try it
    </Link>
  );
}

function WillBeMade({ recipe: { inbox, contexts, schedule } }: { recipe: Recipe }) {
  return (
    <>
      <div>
        <h3 className="mb-1 font-medium">It makes an inbox</h3>
        <p className="text-soft">
          “{inbox.label}”, with an address of its own.{" "}
          {inbox.reply_enabled ? "It answers by mail" : "It sends no answers"}
          {inbox.scope?.targets ? `, and ${toolWords(inbox.scope.targets)}.` : "."}
        </p>
        {schedule && (
          <p className="text-soft">
            Mail that others send to it, newsletters too, is kept for the digest. That is mailed to you{" "}
            {schedule.every.replace("weekday ", "on weekdays at ")}.
          </p>
        )}
      </div>
      <div className="grid gap-2">
        <h3 className="font-medium">
          {contexts.length === 1 ? "and a context that it works by" : "and contexts that it works by"}
        </h3>
        {contexts.map(({ slug, title, kind, body }) => (
          <details key={slug} className="rounded-md border border-line">
            <summary className="px-3 py-2 text-sm">
              <span className="mr-2 font-medium">{title}</span>
              <Badge>{KINDS[kind].word}</Badge>
            </summary>
            <div className="border-t border-line px-3 py-2 text-sm">
              <Markdown text={body} />
            </div>
          </details>
        ))}
      </div>
    </>
  );
}

function toolWords(targets: string[]): string {
  if (targets.length === 0) return "it uses no tools";
  return `the only tools that it may use are ${targets.map((target) => providerOf(target)?.name ?? target).join(", ")}`;
}

/** The connections that a recipe needs, and whether they are there. */
function Needs({ requires }: { requires: string[] }) {
  const { data: connections } = useQuery(connectionList);
  if (!connections) return null;
  return (
    <div>
      <h3 className="mb-1 font-medium">It needs</h3>
      <ul className="grid gap-1 text-soft">
        {requires.map((need) => {
          const there = connections.some(({ kind, category }) => kind === need || category === need);
          return (
            <li key={need} className="flex items-center gap-2">
              {need === "llm" ? "a model" : (providerOf(need)?.name ?? need)}
              {there ? (
                <Check aria-label="connected" className="size-4 text-good" />
              ) : (
                <Badge look="warn">Not connected yet</Badge>
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}

function Applied({ applied, onClose }: { applied: AppliedRecipe; onClose: () => void }) {
  const { inboxes, contexts, schedules = [] } = applied.created;
  const [inbox] = inboxes;
  const undo = useChange({
    run: async () => {
      for (const one of inboxes) refuseChanged(await get<Inbox>(`/inboxes/${one.id}`), one, ["updated"]);
      for (const one of contexts) refuseChanged(await get<Context>(`/contexts/${one.id}`), one, ["version"]);
      for (const { id } of schedules) await remove(`/v1/schedules/${id}`);
      for (const { id } of inboxes) await remove(`/inboxes/${id}`);
      for (const { id } of contexts) await remove(`/contexts/${id}`);
    },
    touches: TOUCHES,
    done: onClose,
  });
  return (
    <div className="grid gap-4">
      <Notice look="good">{inbox ? readyWords(schedules.length > 0) : madeWords(contexts.length)}</Notice>
      {inbox && <Copyable text={inbox.address} label="Copy the address" />}
      {applied.next_steps.length > 0 && (
        <div>
          <h3 className="mb-1 font-medium">Still to do</h3>
          <ul className="list-disc pl-5">
            {applied.next_steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ul>
          <Link to="/connections" className="text-accent underline">
            Go to the connections
          </Link>
        </div>
      )}
      <Fault error={undo.error} />
      <div className="flex flex-wrap items-center justify-between gap-2">
        {inbox && <InboxLink id={inbox.id} />}
        {(inbox || contexts.length > 0) && (
          <Button busy={undo.isPending} onClick={() => undo.mutate()}>
            Undo
          </Button>
        )}
      </div>
    </div>
  );
}

function readyWords(is_digest: boolean): string {
  return is_digest
    ? "It is ready. Have what you want summed up sent to this address:"
    : "It is ready. Write to this address:";
}

function madeWords(contexts: number): string {
  if (contexts === 0) return "You had all of it already; nothing was changed.";
  return contexts === 1
    ? "The context that was missing is there again."
    : "The contexts that were missing are there again.";
}
