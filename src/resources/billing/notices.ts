import { knownZone } from "../../lib/written-moment.ts";
import { asCode } from "../../trust/shown/as-code.ts";
import type { App } from "../../app.ts";
import { recountStorage } from "../../db/account-storage.ts";
import type { Db } from "../../db/database.ts";
import { takeTurn } from "../../db/rate-limits.ts";
import type { UserRow } from "../../db/schema.ts";
import { NOT_DONE } from "../../db/unfinished.ts";
import type { JobPayloads } from "../../jobs/kinds.ts";
import { millisecondsOf } from "../../lib/first-id.ts";
import { tellOwnerLater } from "../../jobs/tell-later.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";
import { creditsOf, keptForHousehold } from "./ledger.ts";
import { planLimits, planName } from "./plans.ts";
import { freeFor, inMb, StorageFull, STRANGERS_PERCENT, storageOf } from "./storage.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/**
 * How often a notice is enqueued: a client that keeps coming back must not cost a commit each time, since the notice is
 * sent once a day.
 */
const TELL_RULE = { limit: 1, window_seconds: HOUR_SECONDS };

/** Enqueues a notice to the owner, at most once a day, that something was not accepted for lack of storage. */
export async function tellFull(
  app: App,
  { id: user_id }: Pick<UserRow, "id">,
  refused: Refused,
): Promise<void> {
  const turn = { key: `storage_notice:${user_id}`, rule: TELL_RULE };
  if (!app.limiter.peek(turn.key, turn.rule).ok) return;
  await app.write(async (tx) => {
    if (takeTurn(app, tx, turn).ok) await tellOwnerLater(app, tx, { user_id, kind: "storage_full", refused });
  });
}

/** Enqueues a notice to the owner if `error` is `storage_full`, and returns the error. */
export async function toldIfFull(app: App, user: UserRow, error: unknown): Promise<unknown> {
  if (error instanceof StorageFull)
    await tellFull(app, user, { what: "call", bytes: error.bytes, whose: "household" });
  return error;
}

export async function mailNoticeNow(app: App, job: Job<"mail_notice">, signal: AbortSignal): Promise<void> {
  const { user_id, kind } = job.payload;
  const user = await app.db
    .selectFrom("users")
    .selectAll()
    .where("id", "=", user_id)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  const since = Math.floor(millisecondsOf(job.id) / 1_000) - BEFORE_ITS_JOB_SECONDS;
  const queue = user && (await LETTERS[kind](app, user, { ...job.payload, since }));
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    if (queue) await queue(tx);
    // Today's letter does not go out, so that the next reason for one may send it.
    else
      await tx.deleteFrom("owner_notices").where("user_id", "=", user_id).where("kind", "=", kind).execute();
  });
}

/** How long before its letter was enqueued a mail may have been taken: both are written by one commit. */
const BEFORE_ITS_JOB_SECONDS = 60;

/** The letter about a lack of credits; undefined once there are some again and no mail was left undone. */
async function creditLetter(app: App, user: UserRow, { since }: Told): Promise<QueueLetter | undefined> {
  const credits = await creditsOf(app, app.db, user);
  const kept = keptForHousehold(credits.allowance);
  if (credits.remaining > kept)
    return lateLetter(app, user, {
      since,
      reason: "credit_limit",
      cause: "there were no credits",
      now: "There are credits again",
    });
  const count = await countLimited(app.db, user, { since: credits.period_start, reason: "credit_limit" });
  const renewal = momentFor(user, credits.resets_at);
  if (credits.remaining > 0)
    return letterTo(app, user, {
      subject: "Mail of strangers has used its share of your Mailwright credits",
      words: [
        `Mail of senders whom you have not listed is not being worked on: of the ${credits.allowance} credits of your ${planName(user.plan)} plan, the last ${kept} are kept for your own mail and calls, and for senders whom you have listed. **${credits.remaining}** are left.`,
        `${manyMails(count)} came in since then. They are kept and listed as \`limited\` in your activity. Nothing was charged for them, and their senders were not told.`,
        `New credits are there on **${renewal}**. List the senders whose mail is to be worked on (allowlist_senders of an inbox): then nobody else can use your credits. ${adviceFor(app, user)}`,
      ],
    });
  return letterTo(app, user, {
    subject: "Your Mailwright credits are used up",
    words: [
      `Mail to your inboxes is not being worked on: the credits of your ${planName(user.plan)} plan for this period are used up (**${credits.used} of ${credits.allowance}**).`,
      `${manyMails(count)} came in since then. They are kept and listed as \`limited\` in your activity. Nothing was charged for them; senders whom you have listed were told, others were not. They will not be worked on later by themselves: have what still matters tried again in your activity once there are credits.`,
      `New credits are there on **${renewal}**. ${adviceFor(app, user)}`,
    ],
  });
}

/**
 * The letter about mail that was left undone for a lack that has ended since, as where the server stood still in between;
 * undefined where there is no such mail. It will not be worked on by itself, so that nobody else would tell of it.
 */
async function lateLetter(
  app: App,
  user: UserRow,
  { since, reason, cause, now }: Pick<Told, "since"> & { reason: LimitedReason; cause: string; now: string },
): Promise<QueueLetter | undefined> {
  const count = await countLimited(app.db, user, { since, reason });
  if (count === 0) return undefined;
  return letterTo(app, user, {
    subject: "Mail was taken, but not worked on",
    words: [
      `${manyMails(count)} to your inboxes ${count === 1 ? "was" : "were"} not worked on when ${count === 1 ? "it" : "they"} came, because ${cause}. Nothing was charged for ${count === 1 ? "it" : "them"}.`,
      `${now}, but such mail is not worked on later by itself: your [activity](${app.base_url}/app/activity) lists it as \`limited\`. Have what still matters tried again there.`,
    ],
  });
}

/** The letter about inboxes beyond the plan; undefined once there is room for all and no mail was left undone. */
async function roomLetter(app: App, user: UserRow, { since }: Told): Promise<QueueLetter | undefined> {
  const limit = planLimits(app.config, user.plan).inboxes;
  const inboxes = await app.db
    .selectFrom("inboxes")
    .select("label")
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null)
    .orderBy("id")
    .execute();
  const resting = inboxes.slice(limit);
  if (resting.length === 0)
    return lateLetter(app, user, {
      since,
      reason: "plan_limit",
      cause: "the inbox was beyond your plan",
      now: "All of your inboxes work again",
    });
  return letterTo(app, user, {
    subject: "An inbox is beyond your Mailwright plan",
    words: [
      `Mail came to an inbox that is not being worked on: your ${planName(user.plan)} plan allows **${limit} inboxes**, and you have ${inboxes.length}. The newest ${resting.length === 1 ? "one rests" : `${resting.length} rest`}, with everything in them.`,
      "Such mail is kept and listed as `limited` in your activity. Nothing was charged for it; senders whom you have listed were told, others were not.",
      `Remove inboxes that you do not need, and the next ones work again. ${adviceFor(app, user)}`,
    ],
  });
}

/** The letter about a lack of storage; undefined once there is room for what was not taken. */
async function fullLetter(
  app: App,
  user: UserRow,
  { refused: of = { what: "mail", bytes: 0 } }: Pick<Notice, "refused">,
): Promise<QueueLetter | undefined> {
  const { what, bytes: adding, whose = "household" } = of;
  // The bytes are counted anew first: what somebody is told has to be right even if the kept count is not.
  await recountStorage(app, user.id);
  const storage = await storageOf(app, app.db, user);
  const left = freeFor(storage, whose);
  if (adding <= left) return undefined;
  const free = inMb(Math.max(0, left), Math.floor);
  const limit = inMb(storage.limit_bytes ?? 0);
  const refused = `A ${what}${adding === 0 ? "" : ` of ${inMb(adding)}`}`;
  const page = (path: string): string => `${app.base_url}/app/${path}`;
  return letterTo(app, user, {
    subject: `A ${what} did not fit into your Mailwright storage`,
    words: [
      whose === "household"
        ? `**${refused} was not taken:** your ${planName(user.plan)} plan stores ${limit}, and ${free} of them are free.`
        : `**${refused} was not taken:** senders whom you have not listed may fill ${STRANGERS_PERCENT} % of the ${limit} that your ${planName(user.plan)} plan stores, and ${free} of that are free. The rest is for your own mail and calls, and for senders whom you have listed.`,
      "Whatever fits is still taken. A mail that does not fit is put off: the server of its sender keeps it and tries again for some days. A call that does not fit is answered with `storage_full`, and nothing of it is kept.",
      `To make room, open one of your [inboxes](${page("inboxes")}), and under Settings choose fewer "Days to keep content": what is older goes within the hour. Or delete [contexts](${page("contexts")}) that you do not need. [Usage](${page("usage")}) shows how much is stored.`,
      `If that is not enough, ask the operator of your server for a larger plan. Operators set the size in the configuration, as \`plans.${user.plan}.storage_mb\`.`,
    ],
  });
}

/** The letter about a message that was not worked on; undefined once that has been deleted. */
async function undoneLetter(
  app: App,
  user: UserRow,
  { kind, message_id = "" }: Pick<Notice, "kind" | "message_id">,
): Promise<QueueLetter | undefined> {
  const message = await app.db
    .selectFrom("messages")
    .select(["sender", "subject", "error"])
    .where("id", "=", message_id)
    .executeTakeFirst();
  if (!message) return undefined;
  const { sender, subject, error } = message;
  const leftOut = kind === "mail_left_out";
  const state = leftOut ? "rejected" : "failed";
  return letterTo(app, user, {
    subject: "A mail was taken, but not worked on",
    words: [
      `A mail from ${asCode(sender ?? "")} about ${asCode(subject || "(no subject)")} was taken by your Mailwright, but not worked on:`,
      asCode(error ?? ""),
      `${leftOut ? "Such mail gets no answer, as it may come from a machine that answers everything." : "Its sender was not told."} Nothing was charged for it.`,
      `There may be others: your [activity](${app.base_url}/app/activity) lists every one of them as \`${state}\`, and says why. ${leftOut ? "Have it try again there" : "Once the cause is mended, have it try again there"} what still matters.`,
    ],
  });
}

/** The letter about a schedule that has paused, or of which the only run has failed; undefined once it goes on, or is gone. */
async function scheduleLetter(
  app: App,
  user: UserRow,
  { schedule_id = "" }: Pick<Notice, "schedule_id">,
): Promise<QueueLetter | undefined> {
  const schedule = await app.db
    .selectFrom("schedules")
    .select(["title", "pattern", "status", "reason"])
    .where("id", "=", schedule_id)
    .where("status", "!=", "active")
    .executeTakeFirst();
  if (!schedule) return undefined;
  const { title, pattern, status, reason } = schedule;
  const page = `${app.base_url}/app/schedules`;
  const markdown = [
    status === "paused"
      ? `Your schedule ${asCode(title)} has been paused:`
      : `Your schedule ${asCode(title)} could not do what it was made for${pattern === null ? "" : " the last time"}:`,
    asCode(reason ?? ""),
    status === "paused"
      ? `It does not run any more. Once the cause is mended, let it go on [on its page](${page}), where you see its runs as well.`
      : `Its runs stand [on its page](${page}). Once the cause is mended, run it again there.`,
  ].join("\n\n");
  const subject =
    status === "paused" ? "A schedule of yours has been paused" : "A schedule of yours has failed";
  return prepareLetter(app, { user_id: user.id, to: user.email, subject, markdown });
}

/** The letter about a mail that a rule could not forward; undefined once the message has been deleted, or the cause has gone. */
async function unforwardedLetter(
  app: App,
  user: UserRow,
  { message_id = "" }: Pick<Notice, "message_id">,
): Promise<QueueLetter | undefined> {
  const message = await app.db
    .selectFrom("messages")
    .select(["sender", "subject", "steps"])
    .where("id", "=", message_id)
    .executeTakeFirst();
  const steps = storedJson<{ type: string; name?: string; output: string }[]>(message?.steps ?? "[]", []);
  const why = steps.find(({ type, name }) => type === "warning" && name === "forward");
  if (!message || !why) return undefined;
  const { sender, subject } = message;
  return letterTo(app, user, {
    subject: "A mail was not forwarded to you",
    words: [
      `A rule of yours forwards a mail from ${asCode(sender ?? "")} about ${asCode(subject || "(no subject)")}:`,
      asCode(why.output),
      `Whatever could not be forwarded is kept, also where a rule leaves it out. There may be others: your [activity](${app.base_url}/app/activity) lists every message, with its steps and its mail.`,
    ],
  });
}

/** The letter about requests for consent of which no letter was sent; undefined once none waits. */
async function approvalsLetter(app: App, user: UserRow): Promise<QueueLetter | undefined> {
  const { count } = await app.db
    .selectFrom("approvals")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", user.id)
    .where("state", "=", "pending")
    .where("expires_at", ">", app.calmNow())
    .executeTakeFirstOrThrow();
  if (count === 0) return undefined;
  return letterTo(app, user, {
    subject: "Calls of tools wait for your yes",
    words: [
      `**${count === 1 ? "One call of a tool waits" : `${count} calls of tools wait`}** for your yes or no. You have no mail about each: more were asked for within an hour than you are mailed about, or a mail about one did not arrive.`,
      `Nothing was done of them. [Their page](${app.base_url}/app/approvals) shows what each would do, and whose mail asked for it; what you do not allow within seven days is never done.`,
    ],
  });
}

type Notice = JobPayloads["mail_notice"];
type Refused = NonNullable<Notice["refused"]>;
/** `since`: the moment from which on the letter is to tell, in unix seconds. */
type Told = Notice & { since: number };
type LimitedReason = "credit_limit" | "plan_limit";

const LETTERS: Record<
  Notice["kind"],
  (app: App, user: UserRow, told: Told) => Promise<QueueLetter | undefined>
> = {
  credits_used_up: creditLetter,
  beyond_plan: roomLetter,
  storage_full: fullLetter,
  mail_left_out: undoneLetter,
  failure_untold: undoneLetter,
  schedule_failed: scheduleLetter,
  not_forwarded: unforwardedLetter,
  approvals_waiting: approvalsLetter,
};

function letterTo(app: App, user: UserRow, { subject, words }: { subject: string; words: string[] }) {
  const markdown = [...words, "You get this mail once a day at most."].join("\n\n");
  return prepareLetter(app, { user_id: user.id, to: user.email, subject, markdown });
}

function adviceFor({ config }: App, { plan }: UserRow): string {
  if (config.billing.stripe_secret_key === "")
    return "If that is not enough, ask the operator of your server for a larger plan.";
  if (plan === "free") return "If that is not enough, get a larger plan with `POST /billing/checkout`.";
  return "If that is not enough, get a larger plan with `POST /billing/checkout`, or buy credits with `POST /billing/topup`.";
}

async function countLimited(
  db: Db,
  user: UserRow,
  { since, reason }: { since: number; reason: LimitedReason },
): Promise<number> {
  const { count } = await db
    .selectFrom("messages")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("user_id", "=", user.id)
    .where(NOT_DONE)
    .where("state", "=", "limited")
    .where("reason", "=", reason)
    .where("source", "=", "email")
    .where("deleted_at", "is", null)
    .where("created", ">=", since)
    .executeTakeFirstOrThrow();
  return count;
}

function manyMails(count: number): string {
  return count === 1 ? "One mail" : `${count} mails`;
}

/** "1 February 2026 at 01:00", on the owner's clock. */
function momentFor(user: UserRow, second: number): string {
  const timezone = knownZone(user.timezone);
  const moment = new Date(second * 1_000);
  const day = moment.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: timezone });
  const time = moment.toLocaleTimeString("en-GB", { timeStyle: "short", timeZone: timezone });
  return `${day} at ${time} (${timezone})`;
}
