import { t } from "elysia";
import { JOB_STATES } from "./queue.ts";

const count = (description: string) => t.Integer({ minimum: 0, description, examples: [3] });
const moment = (what: string) =>
  t.Integer({ description: `${what}, in unix seconds.`, examples: [1_768_478_400] });
const account = t.String({ description: "Mail address of the account.", examples: ["ada@example.com"] });
const plan = t.Union([t.Literal("free"), t.Literal("pro"), t.Literal("team")]);
const kind = t.String({ description: "What kind of work.", examples: ["send_mail"] });

export const jobState = t.Union(JOB_STATES.map((state) => t.Literal(state)));

export const JobShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    kind,
    state: t.Union(
      JOB_STATES.map((state) => t.Literal(state)),
      {
        description:
          "`due`: waits for its turn. `waiting`: for its time. `held`: for a release. `dead`: given up, and kept for somebody to look at.",
      },
    ),
    about: t.String({ description: "What it is for.", examples: ["send a reply to ada@example.com"] }),
    account: t.Nullable(account),
    why: t.String({ description: "Why it is not done yet.", examples: ["its turn is next"] }),
    attempts: count("Times it was begun."),
    failures: count("Times it failed."),
    last_error: t.Nullable(t.String()),
    created: moment("When it was queued"),
    next_at: t.Nullable(moment("When it is tried next")),
  },
  { $id: "Job" },
);

export const AdminUserShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    email: account,
    email_verified: t.Boolean(),
    name: t.Nullable(t.String({ examples: ["Ada"] })),
    plan,
    is_admin: t.Boolean(),
    created: moment("When the account was made"),
    credits: t.Object({
      allowance: count("Credits of the plan for this period."),
      used: count("Of them, those that are spent or set aside."),
      topup: count("Of those that were bought, what is left."),
      remaining: count("Credits left."),
    }),
    usage: t.Object({
      inboxes: count("Inboxes."),
      connections: count("Connections."),
      messages_30_days: count("Messages of the last 30 days, refused ones too."),
    }),
  },
  { $id: "AdminUser" },
);

const outgoing = {
  id: t.String({ format: "uuid" }),
  kind: t.Union([t.Literal("reply"), t.Literal("notice")]),
  account,
  to: t.String({ description: "Whom it is for.", examples: ["bob@example.net"] }),
  message_id: t.Nullable(t.String({ format: "uuid", description: "The message it answers." })),
  status: t.Union([
    t.Literal("queued"),
    t.Literal("sent"),
    t.Literal("deferred"),
    t.Literal("bounced"),
    t.Literal("suppressed"),
  ]),
  response: t.Nullable(t.String({ description: "What the last attempt was told." })),
  attempts: count("Attempts to hand it over."),
  created: moment("When it was queued"),
  completed: t.Nullable(moment("When nothing more was to be done for it")),
};

export const OutgoingMailShape = t.Object(outgoing, { $id: "OutgoingMail" });

export const OutgoingMailDetailShape = t.Object(
  {
    ...outgoing,
    raw: t.Nullable(
      t.String({
        description:
          'The whole mail, in `outbound.mode = "capture"` only: there it goes nowhere else. Null once it was deleted.',
      }),
    ),
  },
  { $id: "OutgoingMailDetail" },
);

export const HeldShape = t.Object(
  { held: t.Array(t.String(), { description: "Kinds of which none is begun.", examples: [["send_mail"]] }) },
  { $id: "HeldKinds" },
);

export const OverviewShape = t.Object(
  {
    version: t.String({ examples: ["0.1.0"] }),
    uptime_seconds: count("Since the server was started."),
    outbound_mode: t.Union([t.Literal("capture"), t.Literal("relay"), t.Literal("direct")]),
    queue: t.Array(
      t.Object({
        kind,
        status: t.Union([t.Literal("pending"), t.Literal("running"), t.Literal("dead")]),
        jobs: count("How many."),
        oldest_seconds: count("For how long the one that is due first has been due."),
      }),
    ),
    held: t.Array(t.String(), { description: "Kinds of which none is begun.", examples: [["send_mail"]] }),
    disk: t.Object({
      free_bytes: count("Free where the data folder is."),
      total_bytes: count("In all."),
    }),
    today: t.Object(
      {
        messages: t.Object({
          received: count("Waiting or being worked on."),
          done: count("Done."),
          failed: count("Failed."),
          limited: count("Over the credit limit."),
          rejected: count("Refused."),
          skipped: count("Left out by a rule."),
        }),
        mails: t.Object({
          queued: count("Waiting for the first attempt."),
          sent: count("Handed over."),
          deferred: count("Waiting for another attempt."),
          bounced: count("Come back."),
          suppressed: count("Not sent."),
        }),
      },
      { description: "Of what began since midnight, UTC." },
    ),
    warnings: t.Array(t.String(), {
      description: "What needs somebody's care. `mailwright doctor` looks further.",
      examples: [["held by the operator: send_mail"]],
    }),
  },
  { $id: "Overview" },
);
