import { t } from "elysia";
import { contextMembers, ContextShape } from "../contexts/shapes.ts";
import { ScheduleShape } from "../schedules/shapes.ts";
import { InboxShape } from "../inboxes/shapes.ts";

const { title, slug, kind, body } = contextMembers;
const { label, scope, reply_enabled, default_instruction, inbound_policy, rules } = InboxShape.properties;

export const RecipeShape = t.Object(
  {
    id: t.String({ examples: ["email-summarizer"] }),
    title: t.String({ examples: ["Summarise mail"] }),
    description: t.String({ examples: ["Forward a long mail and get the points that matter."] }),
    category: t.Union([t.Literal("reading"), t.Literal("writing"), t.Literal("filing")]),
    icon: t.String({ description: "A word for the picture to show.", examples: ["list"] }),
    min_plan: t.Union([t.Literal("free"), t.Literal("pro"), t.Literal("team")]),
    requires: t.Array(t.String(), {
      description: "`llm` and the kinds of other connections it works with.",
      examples: [["llm"]],
    }),
    contexts: t.Array(t.Object({ title, slug, kind, body })),
    inbox: t.Object({
      label,
      scope,
      reply_enabled,
      default_instruction,
      inbound_policy: t.Optional(t.Partial(inbound_policy)),
      rules: t.Optional(rules),
    }),
    schedule: t.Optional(
      t.Object(
        { title: t.String(), instruction: t.String(), every: t.String({ examples: ["weekday 8:00"] }) },
        { description: "Has the inbox work through what came in, at these times." },
      ),
    ),
    applied: t.Boolean({ description: "Whether you have all of it.", examples: [false] }),
  },
  { $id: "Recipe", description: "An inbox and the contexts it works by, ready to be made." },
);

const SkippedShape = t.Object(
  {
    type: t.Union([t.Literal("context"), t.Literal("inbox")]),
    slug: t.Optional(t.String({ description: "The slug of a context." })),
    label: t.Optional(t.String({ description: "The label of an inbox." })),
    reason: t.Literal("exists"),
  },
  { examples: [{ type: "context", slug: "email-summary", reason: "exists" }] },
);

export const AppliedRecipeShape = t.Object(
  {
    recipe_id: t.String({ examples: ["email-summarizer"] }),
    created: t.Object({
      contexts: t.Array(ContextShape),
      inboxes: t.Array(InboxShape),
      schedules: t.Optional(t.Array(ScheduleShape, { description: "Only where the recipe has one." })),
    }),
    skipped: t.Array(SkippedShape, { description: "What was there before." }),
    next_steps: t.Array(t.String(), {
      description: "What is still missing, for a person to read.",
      examples: [["Connect an LLM provider"]],
    }),
  },
  { $id: "AppliedRecipe" },
);
