import { asCode } from "../../trust/shown/as-code.ts";
import type { App } from "../../app.ts";
import { recountStorage } from "../../db/account-storage.ts";
import { takeTurn } from "../../db/rate-limits.ts";
import { jobsInLane } from "../../db/due-jobs.ts";
import { laneOfNotices } from "../../db/job-keys.ts";
import type { UserRow } from "../../db/schema.ts";
import type { JobPayloads } from "../../jobs/kinds.ts";
import { millisecondsOf } from "../../lib/first-id.ts";
import { isTold, mayTellFrom, noteTold, putOffLane, tellOwnerLater } from "../../jobs/tell-later.ts";
import { finishJob, type Job, leaveKey, payloadOf, returnJob } from "../../jobs/queue.ts";
import { deleteWaitingInLane } from "../../jobs/remove.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";
import { budgetLetter, undoneForBudgetLetter } from "./budget-letters.ts";
import { creditLetter, letterTo, roomLetter, strangersLetter, type Told } from "./limit-letters.ts";
import { moreOf } from "./plans.ts";
import { freeFor, inMb, StorageFull, STRANGERS_PERCENT, storageOf } from "./storage.ts";
import { undoneLetter, unforwardedLetter } from "./undone-letters.ts";
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

/** Letters that go whatever went on the same day: each is about something else. */
const AT_ONCE: ReadonlySet<Notice["kind"]> = new Set(["schedule_failed", "budget_low", "budget_used_up"]);

/**
 * Mails an owner what waits to be told by one kind of letter, unless such a letter has gone today: then tomorrow, whenever the job is run
 * until then.
 */
export async function mailNoticeNow(app: App, job: Job<"mail_notice">, signal: AbortSignal): Promise<void> {
  const { user_id, kind, once } = job.payload;
  if (once !== undefined && (await isTold(app.db, { user_id, kind }, once)))
    return writeOutcome(app, signal, (tx) => finishJob(tx, job));
  const is_daily = !AT_ONCE.has(kind);
  const lane = laneOfNotices(job.payload);
  const later = is_daily ? await mayTellFrom(app, app.db, { user_id, kind }) : null;
  if (later !== null)
    return app.write(async (tx) => {
      await returnJob(tx, job, { run_at: later });
      await putOffLane(tx, { lane, run_at: later });
    });
  const { others, last_id } = await leadLane(app, job, lane);
  const user = await app.db
    .selectFrom("users")
    .selectAll()
    .where("id", "=", user_id)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  const since = Math.floor(millisecondsOf(job.id) / 1_000) - BEFORE_ITS_JOB_SECONDS;
  const notices = [job.payload, ...others];
  const queue = user && (await LETTERS[kind](app, user, { ...job.payload, notices, since }));
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    await deleteWaitingInLane(tx, { lane, last_id });
    if (!queue) return;
    await queue(tx);
    if (is_daily || once !== undefined) await noteTold(app, tx, job.payload);
  });
}

/** Returns what else waits for the letter that a job writes. What comes in from here on has a job of its own, and is told tomorrow. */
async function leadLane(
  app: App,
  job: Job<"mail_notice">,
  lane: string,
): Promise<{ others: Notice[]; last_id: string }> {
  if (job.payload.message_id === undefined) await app.write((tx) => leaveKey(tx, job));
  const rows = await jobsInLane(app.db, { lane });
  const others = rows.filter(({ id }) => id !== job.id);
  return { others: others.map((row) => payloadOf(row) as Notice), last_id: rows.at(-1)?.id ?? job.id };
}

/** How long before its letter was asked for a mail may have been taken: both are written by one commit. */
const BEFORE_ITS_JOB_SECONDS = 60;

const OF_UNKNOWN_SIZE: Refused = { what: "mail", bytes: 0 };

/** The letter about a lack of storage; undefined once there is room for whatever was not taken. */
async function fullLetter(app: App, user: UserRow, { notices }: Told): Promise<QueueLetter | undefined> {
  const largest = notices
    .flatMap(({ refused }) => refused ?? [])
    .reduce((most, refused) => (refused.bytes >= most.bytes ? refused : most), OF_UNKNOWN_SIZE);
  const { what, bytes: adding, whose = "household" } = largest;
  // The bytes are counted anew first: what somebody is told has to be right even if the kept count is not.
  await recountStorage(app, user.id);
  const storage = await storageOf(app, app.db, user);
  const left = freeFor(storage, whose);
  if (adding <= left) return undefined;
  const free = inMb(Math.max(0, left), Math.floor);
  const limit = inMb(storage.limit_bytes ?? 0);
  const refused = `A ${what}${adding === 0 ? "" : ` of ${inMb(adding)}`}`;
  return letterTo(app, user, {
    subject: `A ${what} did not fit into your Mailwright storage`,
    words: [
      whose === "household"
        ? `**${refused} was not taken:** you may store ${limit}, and ${free} of them are free.`
        : `**${refused} was not taken:** senders whom you have not listed may fill ${STRANGERS_PERCENT} % of the ${limit} that you may store, and ${free} of that are free. The rest is for your own mail and calls, and for senders whom you have listed.`,
      "Whatever fits is still taken. A mail that does not fit is put off: the server of its sender keeps it and tries again for some days. A call that does not fit is refused, and nothing of it is kept.",
      `To make room, open one of your [inboxes](${app.base_url}/app/inboxes), and under Settings choose fewer “Days to keep content”: what is older goes within the hour. Or delete [contexts](${app.base_url}/app/contexts) that you do not need. [Usage](${app.base_url}/app/usage) shows how much is stored.`,
      `If that is not enough, ${moreOf(app.config, user.plan, "storage_mb")}.`,
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
  budget_undone: undoneForBudgetLetter,
};
