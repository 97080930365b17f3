import { useQuery } from "@tanstack/react-query";
import {
  Braces,
  Bug,
  Languages,
  List,
  Newspaper,
  type LucideIcon,
  NotebookPen,
  Receipt,
  Reply,
  Search,
  Sparkles,
} from "lucide-react";
import { useState } from "react";
import { recipeList } from "../../api/lists.ts";
import { useMe, useSold } from "../../api/session.ts";
import type { Recipe } from "../../api/shapes.ts";
import { Badge } from "../../ui/badge.tsx";
import { Button } from "../../ui/button.tsx";
import { Fault } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { Loading } from "../../ui/spinner.tsx";
import { RecipePreview } from "./recipe-preview.tsx";

const ICONS: Record<string, LucideIcon> = {
  list: List,
  newspaper: Newspaper,
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
      {chosen && <RecipePreview recipe={chosen} onClose={() => setChosen(undefined)} />}
    </Page>
  );
}

function Tile({ recipe, onChoose }: { recipe: Recipe; onChoose: () => void }) {
  const Icon = ICONS[recipe.icon] ?? Sparkles;
  return (
    <li className="flex flex-col gap-2 rounded-xl border border-line bg-card p-4">
      <div className="flex items-start justify-between gap-2">
        <Icon aria-hidden className="size-5 text-accent" />
        {recipe.applied ? <Badge look="good">You have it</Badge> : <PlanBadge recipe={recipe} />}
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

/** The plan that a recipe needs; plans have names only where they are sold. */
function PlanBadge({ recipe: { min_plan } }: { recipe: Recipe }) {
  const { plan } = useMe();
  const sold = useSold();
  if (PLANS.indexOf(plan) >= PLANS.indexOf(min_plan)) return null;
  return sold ? (
    <Badge>From {min_plan === "pro" ? "Pro" : "Team"}</Badge>
  ) : (
    <Badge>Not for your account</Badge>
  );
}

const PLANS = ["free", "pro", "team"];
