import { t } from "elysia";
import { WarningsShape, moment } from "../../http/shapes.ts";
import { cost } from "../billing/budget-shapes.ts";
import { UsedContextShape } from "../contexts/shapes.ts";
import { DeliveryShape } from "../webhooks/shapes.ts";
import { HighlightShape } from "./search/shapes.ts";
import { expectedShape } from "../test-runs/expected-shapes.ts";

export const count = (what: string) => t.Integer({ minimum: 0, description: what });

export const AttachmentShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    direction: t.Union([t.Literal("in"), t.Literal("out")]),
    filename: t.String({ examples: ["report.csv"] }),
    content_type: t.String({ examples: ["text/csv"] }),
    size: count("Bytes."),
    url: t.String({ description: "Path of the download.", examples: ["/messages/…/attachments/…"] }),
    purged: t.Optional(t.Boolean({ description: "True once the bytes have been deleted." })),
    lost: t.Optional(
      t.Boolean({ description: "True while the bytes are missing on the disk of the server." }),
    ),
  },
  { $id: "Attachment" },
);

export const StepShape = t.Object(
  {
    index: t.Integer({ minimum: 0 }),
    type: t.Union(["tool_call", "context", "extract", "warning"].map((name) => t.Literal(name))),
    server: t.Optional(t.Nullable(t.String())),
    name: t.Optional(t.String()),
    arguments: t.Optional(t.Unknown()),
    status: t.Union(["ok", "error", "blocked"].map((name) => t.Literal(name))),
    output: t.Optional(t.Nullable(t.String())),
    duration_ms: t.Optional(t.Nullable(t.Integer({ minimum: 0 }))),
  },
  { $id: "Step", description: "One thing the run did on the way to its result." },
);

export const CommandShape = t.Object(
  {
    target: t.Nullable(t.String()),
    command: t.String({ examples: ["Summarise this"] }),
    options: t.Record(t.String(), t.Unknown(), { examples: [{}] }),
    contexts: t.Array(t.String(), { examples: [[]] }),
    tags: t.Array(t.String(), { examples: [[]] }),
    macro: t.Nullable(t.String()),
    raw: t.String({ examples: ["Summarise this"] }),
  },
  { $id: "Command", description: "The instruction as it was understood." },
);

export const usage = t.Nullable(
  t.Object(
    {
      input_tokens: count("Tokens read."),
      output_tokens: count("Tokens written."),
    },
    { $id: "Usage" },
  ),
);
export const source = t.Union([t.Literal("email"), t.Literal("api"), t.Literal("test")]);
export const activityStatus = t.Union([
  t.Literal("received"),
  t.Literal("done"),
  t.Literal("failed"),
  t.Literal("rejected"),
  t.Literal("limited"),
]);
export const replyStatus = t.Union(
  ["none", "queued", "sent", "deferred", "bounced", "suppressed"].map((name) => t.Literal(name)),
  {
    description:
      "The state of the mail that answers: `sent` is handed over to the next server or, where outgoing mail is captured, kept; `deferred` is tried again later, by this server or, once it was handed over, by another one that said so; six days after that it counts as `sent` if it has not come back.",
  },
);

const metadata = t.Record(t.String(), t.String(), {
  description: "What the maker of the call noted on it.",
  examples: [{ order: "4711" }],
});

const waitsUntil = moment("Until when a rule of its inbox has it wait");

const routing = {
  waits_until: t.Optional(waitsUntil),
  message_id: t.String({ format: "uuid" }),
  conversation_id: t.Nullable(t.String({ format: "uuid" })),
  source,
  result: t.String({
    description:
      "Output of the model; empty until there is one. Where a change was blocked, sentences below it say which words would allow it; never below JSON, nor with --format=json, csv or html: then the steps alone say so.",
    examples: ["It is fine."],
  }),
  error: t.Nullable(t.String(), { examples: [null], description: "Why a run failed, in words." }),
  usage,
  cost,
  steps: t.Array(StepShape),
  attachments: t.Array(AttachmentShape, { description: "Files that the run produced." }),
  reply_status: replyStatus,
  subject: t.Nullable(t.String()),
  metadata,
  created: moment("When it was accepted"),
};
const credits = {
  charged: count("Credits this run cost."),
  remaining: count(
    "Credits left in this period. Where they are unlimited (`credits.unlimited` of `GET /auth/me`) a number that never comes to an end.",
  ),
};

export const RunShape = t.Object(
  {
    ...routing,
    status: t.Union(["done", "failed", "limited", "skipped", "processing"].map((name) => t.Literal(name))),
    credits: t.Object(credits),
  },
  { $id: "RoutingResult" },
);

export const LimitedShape = t.Object(
  {
    ...routing,
    status: t.Literal("limited"),
    code: t.Literal("credit_limit"),
    credits: t.Object({ ...credits, resets_at: moment("When there are new credits") }),
    warnings: t.Optional(WarningsShape),
  },
  { $id: "CreditLimit", description: "The call was over the credit cap; nothing was charged." },
);

export const ActivityShape = t.Object(
  {
    message_id: t.String({ format: "uuid" }),
    conversation_id: t.Nullable(t.String({ format: "uuid" })),
    inbox_id: t.Nullable(t.String({ format: "uuid" })),
    source,
    status: activityStatus,
    command: t.Nullable(CommandShape),
    result: t.String(),
    error: t.Nullable(t.String()),
    reason: t.Nullable(
      t.String({
        description:
          "Machine-readable cause of what became of it; of a received one `inbox_paused`, where it waits for that.",
        examples: ["not_allowlisted"],
      }),
    ),
    usage,
    cost,
    steps: t.Array(StepShape),
    attachments: t.Array(AttachmentShape, { description: "Files of both directions." }),
    subject: t.Nullable(t.String()),
    sender: t.Nullable(t.String({ examples: ["ada@example.com"] })),
    auth: t.Nullable(
      t.Record(t.String(), t.Unknown(), { examples: [{ spf: "pass", dkim: "pass", dmarc: "pass" }] }),
    ),
    model: t.Nullable(t.String()),
    credits_charged: count("Credits this run cost."),
    reply_status: replyStatus,
    reply_error: t.Nullable(t.String()),
    duplicates: count("How often the same mail came again."),
    mails: t.Integer({
      minimum: 1,
      description:
        "How many mails it stands for. More than one only where so many were refused or left out in an hour that the rest of them are counted, by their reason, in one message without a sender and a subject.",
      examples: [1],
    }),
    schedule_id: t.Nullable(t.String({ format: "uuid", description: "The schedule that made it." })),
    approval_id: t.Nullable(
      t.String({ format: "uuid", description: "The request for consent that it answers." }),
    ),
    retry_of: t.Nullable(
      t.String({
        format: "uuid",
        description: "The message that this one tries again; of several tries, the first.",
      }),
    ),
    rules: t.Array(t.String(), {
      description: "The rules of its inbox that were for it.",
      examples: [["Invoices"]],
    }),
    may_retry: t.Nullable(
      t.Union([t.Literal("run"), t.Literal("begin"), t.Literal("send"), t.Literal("now")], {
        description:
          "What `POST /messages/{message_id}/retry` would do: `run` does the work of a failed message again, `begin` has a kept one worked on for the first time, `send` mails an answer again that came back or was not sent, `now` has one worked on that a rule has wait, or that waits for its next try because its model has failed for the moment. Null if it would be refused.",
        examples: [null],
      }),
    ),
    tried_again: t.Nullable(
      t.Union([t.Literal("received"), t.Literal("done")], {
        description:
          "What has become of another try of a failed or a kept message: `received` is worked on, `done` is done. Null where there is none, or where it failed too.",
        examples: [null],
      }),
    ),
    waits_until: t.Nullable(waitsUntil),
    tags: t.Array(t.String(), {
      description:
        "The recipient's +tag, the #tags of its instruction, those of rules, and what was given to it by hand. The latter, and the +tag, are replaced by `PATCH /messages/{message_id}`; the others stay.",
    }),
    metadata,
    highlights: t.Optional(
      t.Array(HighlightShape, {
        maxItems: 3,
        description:
          "Only in a list with `q`: where the words stand. Empty where they stand too far down in a long text.",
      }),
    ),
    created: moment("When it was accepted"),
    completed: t.Nullable(moment("When it ended")),
    duration_ms: t.Nullable(t.Integer({ minimum: 0, description: "From its arrival to its end." })),
    waited_ms: t.Nullable(
      t.Integer({
        minimum: 0,
        description: "How much of that it waited because a rule of its inbox asked for it.",
        examples: [0],
      }),
    ),
  },
  { $id: "Message" },
);

const ReplyShape = t.Object(
  {
    to: t.String({ examples: ["ada@example.com"] }),
    status: t.Union(["queued", "sent", "deferred", "bounced", "suppressed"].map((name) => t.Literal(name))),
    kept_here: t.Boolean({
      description: "Whether it went nowhere, because this server keeps outgoing mail in its capture box.",
      examples: [false],
    }),
    held: t.Boolean({
      description:
        "Whether it waits until this server mails again what it writes: it was queued before outgoing mail was captured.",
      examples: [false],
    }),
    attempts: count("How often it was tried."),
    response: t.Nullable(t.String({ description: "What came of the last attempt, in words." })),
    created: moment("When it was written"),
    completed: t.Nullable(moment("When it was handed over, or given up")),
  },
  { $id: "Reply", description: "The mail that answers." },
);

export const StoryShape = t.Composite(
  [
    ActivityShape,
    t.Object({
      authority: t.Union(
        ["owner", "listed", "stranger", "unauthenticated"].map((name) => t.Literal(name)),
        {
          description: "Whose words it carries, and so what it may have done.",
        },
      ),
      instruction: t.String({
        description: "What was read as the instruction; empty if nothing was.",
        examples: ["Summarise this"],
      }),
      contexts: t.Array(UsedContextShape, {
        description:
          "The contexts, and the macro, that the model was given. `GET /contexts/{id}/versions/{version}` has what each said, as long as it is kept.",
        examples: [[]],
      }),
      content: t.Nullable(
        t.String({
          description:
            "What was read as data and never obeyed, 100,000 characters at most; what was read of files is not in it. Null once it has been deleted, and where it was never kept.",
          examples: ["From: ada@example.com"],
        }),
      ),
      content_truncated: t.Boolean({ description: "Whether there was more of it." }),
      running: t.Boolean({ description: "Whether it is being worked on right now, and does not wait." }),
      held: t.Boolean({
        description: "Whether it waits until the administrator of the server lets all such work go on.",
        examples: [false],
      }),
      to: t.Array(t.String(), {
        description: "Whom a mail names as its recipients, as long as the mail is kept.",
        examples: [["reports-k3m9x2abcdef@mail.example.org"]],
      }),
      cc: t.Array(t.String(), { description: "The same of Cc.", examples: [[]] }),
      newer: t.Nullable(t.String({ format: "uuid", description: "Your message that was accepted next." })),
      older: t.Nullable(t.String({ format: "uuid", description: "Your message before it." })),
      no_reply_reason: t.Nullable(
        t.String({
          description:
            "Why no answer may be mailed, as a machine-readable cause; `reply_error` says it in words.",
          examples: [null],
        }),
      ),
      reply: t.Nullable(ReplyShape),
      deliveries: t.Array(
        t.Composite([DeliveryShape, t.Object({ endpoint_id: t.String({ format: "uuid" }) })], {
          $id: "MessageDelivery",
        }),
        { description: "What went to webhooks about it, newest first, 100 at most." },
      ),
      raw_available: t.Boolean({ description: "Whether `GET /messages/{message_id}/raw` has the mail." }),
      retries: t.Array(t.String({ format: "uuid" }), {
        description: "The messages that try it again, oldest first.",
        examples: [[]],
      }),
      expected: expectedShape,
    }),
  ],
  { $id: "MessageStory" },
);
