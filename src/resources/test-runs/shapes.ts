import { t } from "elysia";
import { moment } from "../../http/shapes.ts";
import { cost } from "../billing/budget-shapes.ts";
import { count, usage } from "../messages/shapes.ts";
import { askedOtherwise, replayBody } from "../replays/shapes.ts";
import { expectedShape } from "./expected-shapes.ts";

const uuid = t.String({ format: "uuid" });

export const StarredShape = t.Object(
  {
    message_id: uuid,
    inbox_id: t.Nullable(uuid),
    subject: t.Nullable(t.String()),
    instruction: t.String({ description: "Its beginning." }),
    expected: expectedShape,
    created: moment("When it was starred"),
  },
  { $id: "StarredMessage" },
);

export const testRunBody = {
  ...replayBody,
  tag: t.Optional(
    t.String({
      minLength: 1,
      maxLength: 100,
      description: "Runs those of the set alone that have this tag.",
      examples: ["q3"],
    }),
  ),
};

const card = {
  id: uuid,
  status: t.Union([t.Literal("processing"), t.Literal("done")]),
  asked: t.Object(
    { ...askedOtherwise, tag: t.Nullable(t.String()) },
    { description: "What was to be otherwise, and with which messages; null where nothing was said." },
  ),
  messages: count("Messages that it is about, without those that have been deleted since."),
  processing: count("Messages that are not done yet."),
  passed: count("Messages whose answer is as expected."),
  failed: count("Messages whose answer is not."),
  errors: count("Messages without an answer, or whose answer could not be judged."),
  usage: t.Object(
    { input_tokens: count("Tokens read."), output_tokens: count("Tokens written.") },
    { description: "The sums of all of them, as far as they are known." },
  ),
  cost,
  duration_ms: count("How long all of them took together."),
  created: moment("When it was asked for"),
  completed: t.Nullable(moment("When the last of them ended")),
};

export const TestRunCardShape = t.Object(card, { $id: "TestRunCard" });

export const TestRunShape = t.Object(
  {
    ...card,
    items: t.Array(
      t.Object({
        replay_id: t.String({
          format: "uuid",
          description: "`GET /messages/{message_id}/replays/{replay_id}` has the whole answer and its steps.",
        }),
        message_id: uuid,
        subject: t.Nullable(t.String()),
        instruction: t.String({ description: "Its beginning." }),
        expected: expectedShape,
        answer_before: t.String({ description: "The beginning of the answer that counts." }),
        answer: t.Nullable(t.String({ description: "The beginning of what this run answers." })),
        status: t.Union([
          t.Literal("processing"),
          t.Literal("passed"),
          t.Literal("failed"),
          t.Literal("error"),
        ]),
        why: t.Nullable(
          t.String({
            description: "What is otherwise than expected, or why nothing is known of it.",
            examples: ["It does not contain “noon”."],
          }),
        ),
        model: t.Nullable(t.String({ description: "The model that answered." })),
        usage,
        cost,
        duration_ms: t.Nullable(t.Integer({ minimum: 0, description: "How long it took." })),
      }),
    ),
  },
  { $id: "TestRun" },
);
