import { asCode } from "../../trust/shown/as-code.ts";
import type { App } from "../../app.ts";
import { recountStorage } from "../../db/account-storage.ts";
import { takeTurn } from "../../db/rate-limits.ts";
import type { Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import type { JobPayloads } from "../../jobs/kinds.ts";
import { millisecondsOf } from "../../lib/first-id.ts";
import { tellOwnerLater } from "../../jobs/tell-later.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { finishJob, type Job } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";
import { budgetLetter } from "./budget-letters.ts";
import { creditLetter, letterTo, roomLetter, strangersLetter, type Told } from "./limit-letters.ts";
import { planName } from "./plans.ts";
import { freeFor, inMb, StorageFull, STRANGERS_PERCENT, storageOf } from "./storage.ts";
import { dayAt, HOUR_SECONDS } from "../../lib/durations.ts";

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
  // Room is left for the owner's own when there is none for strangers: the owner is told of each.
  const kind = refused.whose === "strangers" ? "strangers_storage" : "storage_full";
  const turn = { key: `${kind}_notice:${user_id}`, rule: TELL_RULE };
  if (!app.limiter.peek(turn.key, turn.rule).ok) return;
  await app.write(async (tx) => {
    if (takeTurn(app, tx, turn).ok) await tellOwnerLater(app, tx, { user_id, kind, refused });
  });
}

/** Enqueues a notice to the owner if `error` is `storage_full`, and returns the error. */
export async function toldIfFull(app: App, user: UserRow, error: unknown): Promise<unknown> {
  if (error instanceof StorageFull)
    await tellFull(app, user, { what: "call", bytes: error.bytes, whose: "household" });
  return error;
}

export async function mailNoticeNow(app: App, job: Job<"mail_notice">, signal: AbortSignal): Promise<void> {
  const { user_id, kind, day = dayAt(app.now()) } = job.payload;
  // What comes in from here on is not in this letter, and is told of tomorrow.
  await forgetLater(app, job.payload);
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
    if (await isTold(tx, job.payload)) return;
    if (queue) await queue(tx);
    // The letter of the day does not go out, so that the next reason for one may send it.
    else await noticesOf(tx, { user_id, kind }).where("day", "=", day).execute();
  });
}

/** Whether a letter has told meanwhile of what this one was put off for: it has taken its day back. */
async function isTold(db: Db, { user_id, kind, day, message_id }: Notice): Promise<boolean> {
  if (day === undefined || message_id !== undefined) return false;
  const taken = db.selectFrom("owner_notices").select("day").where("user_id", "=", user_id);
  return (await taken.where("kind", "=", kind).where("day", "=", day).execute()).length === 0;
}

/** Has no later letter go out for what came in until now, where this one tells of all of it; one about a message does not. */
async function forgetLater(app: App, { user_id, kind, day, message_id, budget }: Notice): Promise<void> {
  if (day === undefined || message_id !== undefined || budget !== undefined) return;
  const later = app.db.selectFrom("owner_notices").select("day").where("user_id", "=", user_id);
  if ((await later.where("kind", "=", kind).where("day", ">", day).execute()).length === 0) return;
  await app.write((tx) => noticesOf(tx, { user_id, kind }).where("day", ">", day).execute());
}

function noticesOf(tx: Db, { user_id, kind }: Pick<Notice, "user_id" | "kind">) {
  return tx.deleteFrom("owner_notices").where("user_id", "=", user_id).where("kind", "=", kind);
}

/** How long before its letter was enqueued a mail may have been taken: both are written by one commit. */
const BEFORE_ITS_JOB_SECONDS = 60;

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

/** The letter about a message that was not worked on; undefined once that has been deleted, or is tried again. */
async function undoneLetter(
  app: App,
  user: UserRow,
  { kind, message_id = "" }: Pick<Notice, "kind" | "message_id">,
): Promise<QueueLetter | undefined> {
  const message = await app.db
    .selectFrom("messages")
    .select(["sender", "subject", "error", "redone"])
    .where("id", "=", message_id)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  if (!message || message.redone === 1 || (await isTriedAgain(app.db, message_id))) return undefined;
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

/** Whether a message is being tried again, or has been with success. */
async function isTriedAgain(db: Db, id: string): Promise<boolean> {
  const others = db.selectFrom("messages").select("id").where("retry_of", "=", id);
  return (await others.where("state", "in", ["received", "done"]).limit(1).execute()).length > 0;
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

const LETTERS: Record<
  Notice["kind"],
  (app: App, user: UserRow, told: Told) => Promise<QueueLetter | undefined>
> = {
  credits_used_up: creditLetter,
  strangers_share: strangersLetter,
  beyond_plan: roomLetter,
  storage_full: fullLetter,
  strangers_storage: fullLetter,
  mail_left_out: undoneLetter,
  failure_untold: undoneLetter,
  schedule_failed: scheduleLetter,
  not_forwarded: unforwardedLetter,
  approvals_waiting: approvalsLetter,
  budget_low: budgetLetter,
  budget_used_up: budgetLetter,
};
