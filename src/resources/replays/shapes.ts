import { t } from "elysia";
import { moment } from "../../http/shapes.ts";
import { UsedContextShape } from "../contexts/shapes.ts";
import { cost } from "../billing/budget-shapes.ts";
import { count, StepShape, usage } from "../messages/shapes.ts";

/** As many contexts as a run may have. */
const MAX_VERSIONS = 100;
const MAX_INSTRUCTION_CHARS = 100_000;
const MAX_MODEL_CHARS = 200;

const uuid = t.String({ format: "uuid" });
const versions = t.Record(uuid, t.Integer({ minimum: 1 }), {
  maxProperties: MAX_VERSIONS,
  description: "By the id of a context, which of its versions the model is given.",
  examples: [{}],
});

/** What a replay does otherwise than the run before. What is left out is as it is now, and contexts as they were then. */
export const replayBody = {
  connection_id: t.Optional(
    t.String({ format: "uuid", description: "A model connection of yours, in place of the inbox's." }),
  ),
  model: t.Optional(
    t.String({
      minLength: 1,
      maxLength: MAX_MODEL_CHARS,
      description: "A model of that connection, in place of the one that it has.",
      examples: ["gpt-4.1-mini"],
    }),
  ),
  instruction: t.Optional(
    t.String({
      minLength: 1,
      maxLength: MAX_INSTRUCTION_CHARS,
      description: "In place of the instruction that the message came with.",
      examples: ["Summarise it in one sentence"],
    }),
  ),
  contexts: t.Optional(
    t.Union([t.Literal("then"), t.Literal("now")], {
      description:
        "`then` (without this member): the contexts of the run before, in the versions of then. `now`: those that a message would be given today.",
    }),
  ),
  context_versions: t.Optional(versions),
};

/** The same, as it is told. */
export const askedOtherwise = {
  connection_id: t.Nullable(uuid),
  model: t.Nullable(t.String()),
  instruction: t.Nullable(t.String()),
  contexts: t.Union([t.Literal("then"), t.Literal("now")]),
  context_versions: versions,
};

const card = {
  id: uuid,
  message_id: uuid,
  status: t.Union([t.Literal("processing"), t.Literal("done"), t.Literal("failed")]),
  asked: t.Object(askedOtherwise, { description: "What was to be otherwise; null where nothing was." }),
  model: t.Nullable(t.String({ description: "The model that answered.", examples: ["gpt-4.1-mini"] })),
  usage,
  cost,
  error: t.Nullable(t.String(), { examples: [null], description: "Why it failed, in words." }),
  reason: t.Nullable(t.String({ description: "Machine-readable cause.", examples: ["model_not_found"] })),
  credits_charged: count("Credits it cost."),
  created: moment("When it was asked for"),
  completed: t.Nullable(moment("When it ended")),
  duration_ms: t.Nullable(t.Integer({ minimum: 0, description: "How long it took." })),
  test_run_id: t.Nullable(
    t.String({
      format: "uuid",
      description: "The run of the test set that it belongs to.",
      examples: [null],
    }),
  ),
};

export const ReplayCardShape = t.Object(card, { $id: "ReplayCard" });

export const ReplayShape = t.Object(
  {
    ...card,
    result: t.String({ description: "Output of the model.", examples: ["It is fine."] }),
    steps: t.Array(StepShape),
    contexts: t.Array(UsedContextShape, { examples: [[]] }),
  },
  { $id: "Replay" },
);
