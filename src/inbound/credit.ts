import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { insertRow } from "../db/prepared.ts";
import type { MessageRow } from "../db/schema.ts";
import { dropFirst, isBehindOthers, type Place, untilCredit, wakeFirst } from "../jobs/credit-waits.ts";
import { finishJob, type Job, returnJob, rewriteJob } from "../jobs/queue.ts";
import { tellOwnerLater, tellSenderLater } from "../jobs/tell-later.ts";
import { backToLane } from "../jobs/waits.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";
import { creditsOf, isMerelyHeld, reserveCredit } from "../resources/billing/ledger.ts";
import type { Whose } from "../resources/billing/storage.ts";
import { messageById } from "../resources/messages/messages.ts";
import { recordState } from "../resources/messages/events.ts";

/** How long a message waits at most for a credit that is held for others. */
const WAITS_SECONDS = HOUR_SECONDS;

const MAIL_LIMITED = "This account has no credits left this month, so the mail was not worked on.";
const STRANGERS_LIMITED =
  "None of the credits that mail of unlisted senders may use are left this month: a fifth is kept for the owner and for listed senders. The mail was not worked on.";
export const CALL_LIMITED = "Credit limit reached: this account has no credits left this month.";
const CALL_HELD =
  "Credit limit reached: all credits that are left this month are held for messages that have not ended. Call again when some of them have.";
const HELD_TOO_LONG =
  "All credits that were left this month were held for other messages for an hour, so this one was not worked on.";
const WAITS =
  "All credits that are left this month are held for other messages. It waits until one is given back, for an hour at most.";

/** What a job of a message is enqueued with that waits for a credit. */
export type Owing = { until: number; whose: Whose } | undefined;

/**
 * Stores a message with a credit reserved for it, or as `limited` where none is left. Where the credits are merely held for others, a
 * message for which nobody sits and waits is taken without one: what is returned is then to be given to `enqueueRun`.
 */
export async function insertAndReserve(app: App, tx: Db, row: MessageRow): Promise<Owing> {
  const whose = whoseIs(row);
  const user = { id: row.user_id };
  const place = placeOf(row);
  const may_wait = !isAwaited(row);
  const is_behind = may_wait && (await isBehindOthers(tx, place));
  const is_paid = row.source === "test" || (!is_behind && (await reserveCredit(app, tx, user, place)));
  if (is_paid) {
    await insertReceived(app, tx, row);
    return undefined;
  }
  const is_held = is_behind || (await isMerelyHeld(app, tx, user, whose));
  if (is_held && may_wait) {
    row.steps = JSON.stringify([{ index: 0, type: "warning", status: "ok", output: WAITS }]);
    await insertReceived(app, tx, row);
    return { until: app.after(WAITS_SECONDS), whose };
  }
  await insertEnded(app, tx, row, { ...OVER_LIMIT, error: is_held ? CALL_HELD : wordsFor(row) });
  return undefined;
}

const OVER_LIMIT = { state: "limited", reason: "credit_limit" } as const;

/** Whether somebody sits before it, who hears at once that there is no credit, and calls again. */
function isAwaited({ source, schedule_id, approval_id, retry_of }: MessageRow): boolean {
  return source !== "email" && schedule_id === null && approval_id === null && retry_of === null;
}

function wordsFor(row: MessageRow): string {
  if (whoseIs(row) === "strangers") return STRANGERS_LIMITED;
  return row.source === "email" && row.retry_of === null && row.schedule_id === null
    ? MAIL_LIMITED
    : CALL_LIMITED;
}

async function insertReceived(app: App, tx: Db, row: MessageRow): Promise<void> {
  await insertRow(tx, "messages", row);
  await recordState(app, tx, row);
}

/** Stores a message that has ended before it was begun. */
export async function insertEnded(
  app: App,
  tx: Db,
  row: MessageRow,
  end: { state: "limited" | "skipped"; reason: "credit_limit" | "plan_limit" | "loop_cap"; error: string },
): Promise<void> {
  Object.assign(row, { ...end, completed: app.now(), duration_ms: 0 });
  await insertReceived(app, tx, row);
}

/**
 * Reserves the credit that a job still owes, and puts it back into its conversation. Else it goes on waiting, or its message ends as
 * `limited`: where none is held any more, with all that wait behind it, so that one letter tells of them.
 */
export async function reserveOwed(app: App, job: Job<"route_message">, message: MessageRow): Promise<void> {
  const { user_id, conversation_id: lane } = message;
  const { owes_until = 0, ...payload } = job.payload;
  const place = placeOf(message);
  await app.write(async (tx) => {
    const now = app.now();
    const is_behind = await isBehindOthers(tx, place);
    if (!is_behind && (await reserveCredit(app, tx, { id: user_id }, place))) {
      await rewriteJob(tx, { id: job.id, payload: JSON.stringify(payload) });
      await backToLane(tx, job, { lane, now });
      await tx.updateTable("messages").set({ steps: "[]" }).where("id", "=", message.id).execute();
      return wakeFirst(app, tx, user_id);
    }
    const is_held = is_behind || (await isMerelyHeld(app, tx, { id: user_id }, place.whose));
    // While its inbox is paused, or where the clock was ahead, the wait has not begun.
    const until = Math.min(owes_until, now + WAITS_SECONDS);
    if (is_held && until > now) {
      await rewriteJob(tx, { id: job.id, payload: JSON.stringify({ ...job.payload, owes_until: until }) });
      await returnJob(tx, job, { ...untilCredit(app, place, until), lane: null });
    } else {
      await finishJob(tx, job);
      await endLimited(app, tx, message, is_held ? HELD_TOO_LONG : wordsFor(message));
      if (!is_held) await endAllBehind(app, tx, user_id);
    }
    // What stands before it may have been woken and not looked at, as where that one was cancelled.
    if (is_behind || !is_held) await wakeFirst(app, tx, user_id);
  });
  app.worker?.wake(job.kind);
}

/** How many messages one commit ends. */
const AT_ONCE = 100;

async function endAllBehind(app: App, tx: Db, user_id: string): Promise<void> {
  for (const id of await dropFirst(tx, user_id, AT_ONCE)) {
    const [message] = await messageById(tx, { id });
    if (message?.state === "received") await endLimited(app, tx, message, wordsFor(message));
  }
}

async function endLimited(app: App, tx: Db, message: MessageRow, error: string): Promise<void> {
  const ended = { ...OVER_LIMIT, error, steps: "[]", completed: app.now(), duration_ms: 0 };
  await tx.updateTable("messages").set(ended).where("id", "=", message.id).execute();
  await recordState(app, tx, { ...message, ...ended });
  await tellOfLimit(app, tx, { ...message, ...ended });
}

function placeOf(message: MessageRow): Place {
  return { user_id: message.user_id, whose: whoseIs(message), message_id: message.id };
}

/**
 * Tells the owner about a limit, by at most one letter a day, for the owner's own mails as well; a listed sender is
 * told too.
 */
export async function tellOfLimit(app: App, tx: Db, row: MessageRow): Promise<void> {
  const { id, user_id, authority } = row;
  await tellOwnerLater(app, tx, { user_id, kind: await limitOf(app, tx, row) });
  if (authority === "listed") await tellSenderLater(app, tx, id);
}

/** What a message was too much for. Credits that strangers may not use are still there for the household's mail. */
async function limitOf(app: App, tx: Db, row: MessageRow) {
  if (row.reason === "plan_limit") return "beyond_plan";
  if (whoseIs(row) === "household") return "credits_used_up";
  const { remaining } = await creditsOf(app, tx, { id: row.user_id });
  return remaining > 0 ? "strangers_share" : "credits_used_up";
}

function whoseIs({ authority }: Pick<MessageRow, "authority">): Whose {
  return authority === "owner" || authority === "listed" ? "household" : "strangers";
}
