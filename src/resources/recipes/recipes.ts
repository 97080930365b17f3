import { MODEL_KINDS } from "../../ai/providers.ts";
import { noteChange } from "../accounts/changes.ts";
import type { Caller } from "../accounts/sessions.ts";
import type { App } from "../../app.ts";
import { refuseBelowPlan, refuseOverCap } from "../billing/plans.ts";
import { addContext, type ContextView, readContext, slugsOf } from "../contexts/contexts.ts";
import { setInboxes } from "../contexts/scope.ts";
import type { Db } from "../../db/database.ts";
import type { ConnectionRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { addInbox, type InboxView, inboxView } from "../inboxes/inboxes.ts";
import { makeSchedule } from "../schedules/schedules.ts";
import type { ScheduleView } from "../schedules/view.ts";
import { RECIPES, type Recipe } from "./catalogue.ts";

export type Skipped =
  | { type: "context"; slug: string; reason: "exists" }
  | { type: "inbox"; label: string; reason: "exists" };

export interface AppliedRecipe {
  recipe_id: string;
  /** Schedules only where the recipe has one. */
  created: { contexts: ContextView[]; inboxes: InboxView[]; schedules?: ScheduleView[] };
  skipped: Skipped[];
  /** What its owner does next, in whole sentences. */
  next_steps: string[];
}

export async function listRecipes(db: Db, user: UserRow): Promise<(Recipe & { applied: boolean })[]> {
  const slugs = await slugsOf(db, user);
  const inboxes = await db
    .selectFrom("inboxes")
    .select("label")
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .execute();
  const labels = new Set(inboxes.map(({ label }) => label));
  return RECIPES.map((recipe) => ({
    ...recipe,
    applied: labels.has(recipe.inbox.label) && recipe.contexts.every(({ slug }) => slugs.has(slug)),
  }));
}

/** Makes what the user does not have yet: contexts are known by their slugs, the inbox by its label. */
export async function applyRecipe(app: App, caller: Caller, id: string): Promise<AppliedRecipe> {
  const { user } = caller;
  const recipe = RECIPES.find((one) => one.id === id);
  if (!recipe)
    throw new AppError("not_found", "There is no such recipe.", {
      fix: "The page “Recipes” has all of them (`GET /recipes`).",
    });
  refuseBelowPlan(user, recipe.min_plan, `The recipe "${recipe.title}"`);
  return app.write(async (tx) => {
    await noteChange(app, tx, caller, "recipe_applied");
    const contexts = await addMissingContexts(app, tx, user, recipe);
    const kinds = await connectedKinds(tx, user);
    const known = await inboxLabelled(app, tx, user, recipe.inbox.label);
    const inbox = known
      ? await withModel(app, tx, user, { inbox: known, model: kinds.model })
      : await addRecipeInbox(app, tx, user, { recipe, model: kinds.model });
    const created: ContextView[] = [];
    for (const context_id of contexts.created) {
      if (known) await setInboxes(tx, user, { context_id, inbox_ids: [known.id] });
      created.push(await readContext(tx, user, context_id));
    }
    const schedules = known ? [] : await addRecipeSchedule(app, tx, caller, { recipe, inbox });
    return {
      recipe_id: id,
      created: {
        contexts: created,
        inboxes: known ? [] : [inbox],
        ...(recipe.schedule === undefined ? {} : { schedules }),
      },
      skipped: [
        ...contexts.skipped,
        ...(known ? [{ type: "inbox", label: known.label, reason: "exists" } as const] : []),
      ],
      next_steps: nextSteps(recipe, inbox, kinds),
    };
  });
}

/**
 * Makes the contexts that are missing, and returns the ids of all. They are for no inbox yet: what a recipe makes
 * belongs to its own inbox.
 */
async function addMissingContexts(
  app: App,
  tx: Db,
  user: UserRow,
  recipe: Recipe,
): Promise<{ created: string[]; skipped: Skipped[] }> {
  const slugs = await slugsOf(tx, user);
  const missing = recipe.contexts.filter(({ slug }) => !slugs.has(slug));
  // This comes before the first is made, so that the refusal tells how many there are.
  if (missing.length > 0)
    refuseOverCap(app, user, "contexts", {
      wanted: slugs.size + missing.length,
      adding: missing.length,
    });
  const created: string[] = [];
  for (const context of missing)
    created.push((await addContext(app, tx, user, { ...context, inbox_ids: [] })).id);
  const skipped = recipe.contexts
    .filter((context) => !missing.includes(context))
    .map(({ slug }) => ({ type: "context", slug, reason: "exists" }) as const);
  return { created, skipped };
}

async function addRecipeInbox(
  app: App,
  tx: Db,
  user: UserRow,
  { recipe, model }: { recipe: Recipe; model: Model | undefined },
): Promise<InboxView> {
  const slugs = await slugsOf(tx, user);
  return addInbox(app, tx, user, {
    ...recipe.inbox,
    context_ids: recipe.contexts.flatMap(({ slug }) => slugs.get(slug) ?? []),
    // Without a connection of its own an inbox works with the operator's.
    ...(app.config.llm.kind === "" && model !== undefined ? { default_connection_id: model.id } : {}),
  });
}

/** Returns the inbox, with the model if it had none. One that rests beyond the plan stays as it is. */
async function withModel(
  app: App,
  tx: Db,
  user: UserRow,
  { inbox, model }: { inbox: InboxView; model: Model | undefined },
): Promise<InboxView> {
  if (inbox.routed || !inbox.enabled || model === undefined) return inbox;
  const changed = { default_connection_id: model.id, updated: app.now() };
  await tx.updateTable("inboxes").set(changed).where("id", "=", inbox.id).execute();
  return (await inboxLabelled(app, tx, user, inbox.label)) ?? inbox;
}

async function addRecipeSchedule(
  app: App,
  tx: Db,
  caller: Caller,
  { recipe, inbox }: { recipe: Recipe; inbox: InboxView },
): Promise<ScheduleView[]> {
  if (recipe.schedule === undefined) return [];
  const made = { ...recipe.schedule, inbox_id: inbox.id, over: { inbox_id: inbox.id } };
  return [await makeSchedule(app, tx, caller, made)];
}

async function inboxLabelled(app: App, tx: Db, user: UserRow, label: string): Promise<InboxView | undefined> {
  const row = await tx
    .selectFrom("inboxes")
    .selectAll()
    .where("user_id", "=", user.id)
    .where("label", "=", label)
    .orderBy("id")
    .limit(1)
    .executeTakeFirst();
  return row && inboxView(app, tx, user, row);
}

type Model = Pick<ConnectionRow, "id" | "label" | "status">;

interface Connected {
  kinds: Set<string>;
  /** The oldest connection to a model that works; without one, the oldest that was not tested yet, else the oldest. */
  model: Model | undefined;
  models: Model[];
}

async function connectedKinds(tx: Db, user: UserRow): Promise<Connected> {
  const rows = await tx
    .selectFrom("connections")
    .select(["id", "kind", "label", "status"])
    .where("user_id", "=", user.id)
    .orderBy("id")
    .execute();
  const models = rows.filter(({ kind }) => kind in MODEL_KINDS);
  const inState = (state: Model["status"]) => models.find(({ status }) => status === state);
  return {
    kinds: new Set(rows.map(({ kind }) => kind)),
    model: inState("ok") ?? inState("untested") ?? models[0],
    models,
  };
}

const SERVICES: Record<Exclude<Recipe["requires"][number], "llm">, string> = {
  notes: "Notion",
  "codehost-a": "GitHub",
  sheets: "Google Sheets",
};

function nextSteps(recipe: Recipe, inbox: InboxView, { kinds, models }: Connected): string[] {
  const services = recipe.requires.flatMap((kind) =>
    kind === "llm" || kinds.has(kind) ? [] : [`Connect ${SERVICES[kind]}`],
  );
  return [...modelSteps(inbox, models), ...services];
}

function modelSteps({ label, routed, default_connection_id }: InboxView, models: Model[]): string[] {
  const model = models.find(({ id }) => id === default_connection_id);
  if (model?.status === "error")
    return [
      `The LLM connection “${model.label}” of the inbox "${label}" did not work when it was asked last: test it, and mend what it says`,
    ];
  if (routed) return [];
  const what = models.length > 0 ? "Choose an LLM connection" : "Connect an LLM provider, then choose it";
  return [`${what} for the inbox "${label}"`];
}
