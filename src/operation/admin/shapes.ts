import { t } from "elysia";
import { BACKUP_STATES } from "./backups.ts";
import { JOB_STATES } from "./queue.ts";
import { moment } from "../../http/shapes.ts";

const count = (description: string) => t.Integer({ minimum: 0, description, examples: [3] });
const account = t.String({ description: "Mail address of the account.", examples: ["ada@example.com"] });
const seconds = (description: string) => t.Number({ minimum: 0, description, examples: [2.5] });
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
          "`due`: waits for its turn. `waiting`: for its time. `held`: for a release, or, of outgoing mail, for another `outbound.mode` than `capture`. `dead`: given up, and kept for somebody to look at.",
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
    may_drop: t.Boolean({
      description: "Whether it may be dropped. What would stay half done without it may not.",
    }),
  },
  { $id: "Job" },
);

export const AdminUserShape = t.Object(
  {
    id: t.String({ format: "uuid" }),
    email: account,
    email_verified: t.Boolean(),
    has_password: t.Boolean({ description: "If not, one signs in with codes by mail." }),
    name: t.Nullable(t.String({ examples: ["Ada"] })),
    plan,
    is_admin: t.Boolean(),
    created: moment("When the account was made"),
    credits: t.Object({
      allowance: count("Credits of the plan for this period."),
      used: count("Credits of the allowance that are spent or set aside."),
      topup: count("Credits that were bought and are left."),
      remaining: count("Credits left."),
      unlimited: t.Boolean({ description: "Whether the plan has no cap." }),
    }),
    usage: t.Object({
      inboxes: count("Inboxes."),
      connections: count("Connections."),
      messages_30_days: count("Messages of the last 30 days, refused ones too."),
    }),
  },
  { $id: "AdminUser" },
);

export const mailStatus = t.Union([
  t.Literal("queued"),
  t.Literal("sent"),
  t.Literal("deferred"),
  t.Literal("bounced"),
  t.Literal("suppressed"),
]);

const outgoing = {
  id: t.String({ format: "uuid" }),
  kind: t.Union([t.Literal("reply"), t.Literal("notice"), t.Literal("forward")]),
  account,
  to: t.String({ description: "Whom it is for.", examples: ["bob@example.net"] }),
  message_id: t.Nullable(
    t.String({ format: "uuid", description: "The message that it answers or takes to the owner." }),
  ),
  status: mailStatus,
  subject: t.Nullable(
    t.String({
      description:
        "Shown of your own mails and of those in the capture box; null of what is another account's, and, to an API key, of letters of the server itself, such as login codes.",
      examples: ["Re: Lunch"],
    }),
  ),
  kept_here: t.Boolean({
    description: 'Whether it went nowhere: it was queued in `outbound.mode = "capture"`.',
    examples: [false],
  }),
  held: t.Boolean({
    description:
      'Whether it was queued for delivery and waits because `outbound.mode` is "capture" now: it goes out once that is changed.',
    examples: [false],
  }),
  response: t.Nullable(t.String({ description: "What the last attempt was told." })),
  attempts: count("Attempts to hand it over."),
  created: moment("When it was queued"),
  completed: t.Nullable(moment("When nothing more was to be done for it")),
};

export const OutgoingMailShape = t.Object(outgoing, { $id: "OutgoingMail" });

export const OutgoingMailDetailShape = t.Object(
  {
    ...outgoing,
    text: t.Nullable(t.String({ description: "Its words, as they read; null as `subject` is." })),
    raw: t.Nullable(
      t.String({
        description:
          'The whole mail: one of your own and, in `outbound.mode = "capture"`, where it goes nowhere else, any. Null once it was deleted.',
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
    waiting: t.Object(
      {
        jobs: count("How many."),
        oldest_seconds: count("For how long the first of them has waited."),
      },
      { description: "Work that could be begun now." },
    ),
    memory_bytes: count("Memory of the process."),
    answers: t.Object(
      {
        counted: count("How many runs, 500 at most."),
        half_within_seconds: t.Nullable(seconds("Half of them took no longer.")),
        most_within_seconds: t.Nullable(seconds("Nine of ten took no longer.")),
      },
      {
        description:
          "How long the last runs since the start of the server took, from a message to its answer.",
      },
    ),
    refusals: t.Array(
      t.Object({
        reason: t.String({ examples: ["unknown_recipient"] }),
        mails: count("How many, or recipients of them."),
      }),
      { description: "What the SMTP door refused or put off since the server was started." },
    ),
    disk: t.Object({
      free_bytes: count("Free where the data folder is."),
      total_bytes: count("In all."),
    }),
    mail_files: t.Object(
      {
        live_bytes: count("Bytes of mails and files that are kept."),
        free_bytes: count("What is on the disk beyond that, and is given back with the hour."),
      },
      { description: "Large mails and files, which lie beside the database." },
    ),
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
        mails_in: count("Messages that came by mail."),
        mails: t.Object({
          queued: count("Waiting for the first attempt."),
          sent: count("Handed over, or kept where outgoing mail is captured."),
          deferred: count("Waiting for another attempt, here or at a server that has it."),
          bounced: count("Come back."),
          suppressed: count("Not sent."),
        }),
      },
      { description: "What began since midnight, UTC." },
    ),
    warnings: t.Array(t.String(), {
      description: "What needs somebody's care. `mailwright doctor` looks further.",
      examples: [["held by the operator: send_mail"]],
    }),
  },
  { $id: "Overview" },
);

export const DaysShape = t.Array(
  t.Object(
    {
      day: t.String({ format: "date", description: "In UTC.", examples: ["2026-01-15"] }),
      messages: count("Messages of every source, refused ones too."),
      mails_in: count("Messages that came by mail."),
      mails_out: count("Mails handed over, or kept where outgoing mail is captured."),
      input_tokens: count("Tokens read by models."),
      output_tokens: count("Tokens written by models."),
    },
    { $id: "ServerDay" },
  ),
);

export const ExaminationShape = t.Object(
  {
    state: t.Union([t.Literal("never"), t.Literal("running"), t.Literal("done")]),
    began: t.Nullable(moment("When it began to look")),
    ended: t.Nullable(moment("When it had seen everything")),
    ended_checks: count("Checks that have ended."),
    checks: count("Checks in all; 0 until that is known."),
    findings: t.Array(
      t.Object({
        name: t.String({ description: "What was looked at.", examples: ["disk space"] }),
        verdict: t.Union([t.Literal("ok"), t.Literal("warn"), t.Literal("fail"), t.Literal("skip")], {
          description: "`skip`: it does not apply, or cannot be seen now.",
        }),
        found: t.String({ examples: ["70,340 MB are free in /var/lib/mailwright."] }),
        mend: t.Nullable(t.String({ description: "What to do about it.", examples: ["Make room."] })),
      }),
      { description: "What the last look found that has ended since the server was started." },
    ),
  },
  { $id: "Examination" },
);

export const BackupsShape = t.Object(
  {
    dir: t.String({
      description: "Where they lie on the server.",
      examples: ["/var/lib/mailwright/backups"],
    }),
    schedule: t.Nullable(
      t.String({ description: "When they are made by themselves; null: never.", examples: ["30 3 * * *"] }),
    ),
    keep: count("How many are kept; a newer one takes the place of the oldest."),
    state: t.Union(
      BACKUP_STATES.map((state) => t.Literal(state)),
      {
        description:
          "The state of the one that is made now, or next. `queued`: about to begin. `held`: once its kind is released. `failed`: the last try; it is made again at `next_at`.",
      },
    ),
    next_at: t.Nullable(moment("When the next one is made")),
    error: t.Nullable(t.String({ description: "Why the last try failed.", examples: ["There is no room."] })),
    bytes_written: t.Nullable(
      t.Integer({
        minimum: 0,
        description: "What the one that is being made has come to.",
        examples: [1_048_576],
      }),
    ),
    items: t.Array(
      t.Object({
        name: t.String({ examples: ["mailwright-20260115T033000Z.zip"] }),
        bytes: count("Its size."),
        created: moment("When it was written"),
        before_upgrade: t.Boolean({
          description: "Made by itself before a new version changed the database, without the mails.",
          examples: [false],
        }),
      }),
      { description: "The newest first, 100 at most." },
    ),
  },
  { $id: "Backups" },
);
