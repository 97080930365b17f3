import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import {
  Braces,
  Bug,
  Languages,
  List,
  type LucideIcon,
  NotebookPen,
  Receipt,
  Reply,
  Search,
  Sparkles,
} from "lucide-react";
import { useState } from "react";
import { useChange } from "../../api/changes.ts";
import { post } from "../../api/client.ts";
import { contextList, inboxList, recipeList } from "../../api/lists.ts";
import type { AppliedRecipe, Recipe } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Copyable } from "../../ui/copy.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Fault, Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";

const ICONS: Record<string, LucideIcon> = {
  list: List,
  languages: Languages,
  notebook: NotebookPen,
  search: Search,
  braces: Braces,
  reply: Reply,
  receipt: Receipt,
  bug: Bug,
};
const CATEGORIES: [Recipe["category"], string][] = [
  ["reading", "For reading"],
  ["writing", "For writing"],
  ["filing", "For filing away"],
];

export function Recipes() {
  const { data: recipes, error, isPending, refetch } = useQuery(recipeList);
  const [chosen, setChosen] = useState<Recipe>();
  return (
    <Page
      title="Recipes"
      intro="Ready-made inboxes with the contexts they work by. You see what will be made before it is, and can change all of it later."
    >
      <Fault error={error} retry={() => void refetch()} />
      {isPending && <Loading what="the recipes" />}
      {recipes &&
        CATEGORIES.map(([category, title]) => (
          <section key={category} className="grid gap-3">
            <h2 className="font-semibold">{title}</h2>
            <ul className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
              {recipes
                .filter((recipe) => recipe.category === category)
                .map((recipe) => (
                  <Tile key={recipe.id} recipe={recipe} onChoose={() => setChosen(recipe)} />
                ))}
            </ul>
          </section>
        ))}
      {chosen && <Preview recipe={chosen} onClose={() => setChosen(undefined)} />}
    </Page>
  );
}

function Tile({ recipe, onChoose }: { recipe: Recipe; onChoose: () => void }) {
  const Icon = ICONS[recipe.icon] ?? Sparkles;
  return (
    <li className="flex flex-col gap-2 rounded-xl border border-line bg-card p-4">
      <div className="flex items-start justify-between gap-2">
        <Icon aria-hidden className="size-5 text-accent" />
        {recipe.applied ? <Badge look="good">You have it</Badge> : planBadge(recipe)}
      </div>
      <h3 className="font-semibold">{recipe.title}</h3>
      <p className="flex-1 text-sm text-soft">{recipe.description}</p>
      <div>
        <Button onClick={onChoose} aria-label={`See what it makes: ${recipe.title}`}>
          See what it makes
        </Button>
      </div>
    </li>
  );
}

function planBadge({ min_plan }: Recipe) {
  return min_plan === "free" ? null : <Badge>From {min_plan === "pro" ? "Pro" : "Team"}</Badge>;
}

function Preview({ recipe, onClose }: { recipe: Recipe; onClose: () => void }) {
  const apply = useChange<void, AppliedRecipe>({
    run: () => post<AppliedRecipe>(`/recipes/${recipe.id}/apply`),
    touches: [recipeList.queryKey, inboxList.queryKey, contextList.queryKey],
  });
  return (
    <Dialog title={recipe.title} onClose={onClose}>
      {apply.data ? (
        <Applied applied={apply.data} />
      ) : (
        <div className="grid gap-4">
          <p>{recipe.description}</p>
          <div>
            <h3 className="mb-1 font-medium">It makes an inbox</h3>
            <p className="text-soft">“{recipe.inbox.label}”, with an address of its own.</p>
          </div>
          <div className="grid gap-2">
            <h3 className="font-medium">and these contexts</h3>
            {recipe.contexts.map(({ slug, title, body }) => (
              <details key={slug} className="rounded-md border border-line">
                <summary className="px-3 py-2 text-sm font-medium">{title}</summary>
                <pre className="max-h-72 overflow-auto border-t border-line px-3 py-2 text-sm whitespace-pre-wrap">
                  {body}
                </pre>
              </details>
            ))}
          </div>
          <Fault error={apply.error} />
          <div className="flex justify-end gap-2">
            <Button onClick={onClose}>Not now</Button>
            <Button look="main" busy={apply.isPending} onClick={() => apply.mutate()}>
              {recipe.applied ? "Make what is missing" : "Make it"}
            </Button>
          </div>
        </div>
      )}
    </Dialog>
  );
}

function Applied({ applied }: { applied: AppliedRecipe }) {
  const [inbox] = applied.created.inboxes;
  return (
    <div className="grid gap-4">
      <Notice look="good">
        {inbox ? "It is ready. Write to this address:" : "You had all of it already; nothing was changed."}
      </Notice>
      {inbox && <Copyable text={inbox.address} label="Copy the address" />}
      {applied.next_steps.length > 0 && (
        <div>
          <h3 className="mb-1 font-medium">Still to do</h3>
          <ul className="list-disc pl-5">
            {applied.next_steps.map((step) => (
              <li key={step}>{step}</li>
            ))}
          </ul>
        </div>
      )}
      {inbox && (
        <Link to="/inboxes/$inbox_id" params={{ inbox_id: inbox.id }} className="text-accent underline">
          Open the inbox and try it
        </Link>
      )}
    </div>
  );
}
