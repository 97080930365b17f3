import type { App } from "../../app.ts";
import { longestUncounted, recountStorage } from "../../db/account-storage.ts";
import type { Db } from "../../db/database.ts";
import { hasten } from "../../jobs/hasten.ts";
import { deferJob, enqueue, type Job } from "../../jobs/queue.ts";
import { deleteJobsOfNothing } from "../../jobs/remove.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { nextTime } from "../../lib/cron.ts";
import { endDelays } from "../../mail/sending/delays.ts";
import {
  type Age,
  purgeAttachments,
  purgeContents,
  purgeForwards,
  purgeOutgoingMails,
  purgeRawMails,
} from "./bytes.ts";
import { eraseRestsAgain } from "./erase-rest.ts";
import { purgeHistory } from "./history.ts";
import { endOutwaited } from "./outwaited.ts";
import { purgeExpired, purgeNews } from "./leftovers.ts";
import { beginShift, halfOf, isOver, type Step, takeTurns, tidyUp } from "../../jobs/shift.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

/** The time of the hourly purge: not on the hour, when most mail comes. */
const HOURLY = "17 * * * *";
const KEY = "purge";
/** How long a mail may be on its way before it comes back: servers give up after five days. */
const RETURNED_DAYS = 7;

/** Plans the hourly purge of what has been kept for long enough. */
export async function purgeLater(app: App, tx: Db): Promise<void> {
  const due = { kind: "purge", dedupe_key: KEY, run_at: nextTime(HOURLY, app.now()) } as const;
  if (await enqueue(app, tx, { ...due, payload: {} })) return;
  // A wrong clock may have planned it years ahead.
  await hasten(app, tx, due);
}

/** Deletes what is old. What it does not finish is left to the next purge. */
export async function purgeNow(app: App, job: Job<"purge">, signal: AbortSignal): Promise<void> {
  const shift = beginShift(app, signal);
  await takeTurns(shift, (tx) => endDelays(app, tx));
  await endOutwaited(shift);
  // Messages take longest. What there is of them leaves time for all the rest.
  const half = halfOf(shift);
  await purgeHistory(half);
  const is_more = isOver(half);
  for (const step of stepsOf(app)) await takeTurns(shift, step);
  await takeTurns(shift, eraseRestsAgain(app));
  await takeTurns(shift, deleteJobsOfNothing);
  await tidyUp(shift);
  // Needs a process of its own: where none can be started, all the rest is done all the same.
  await recountOne(app);
  const run_at = is_more || isOver(shift) ? app.now() : nextTime(HOURLY, app.now());
  await writeOutcome(app, signal, (tx) => deferJob(tx, job, run_at));
}

function stepsOf(app: App): Step[] {
  const { raw_days, content_days, attachment_days, delivery_days } = app.config.retention;
  return [
    ...after(app, raw_days, (age) => [purgeRawMails(age), purgeOutgoingMails(age)]),
    ...after(app, RETURNED_DAYS, (age) => [purgeForwards(age)]),
    ...after(app, content_days, (age) => [purgeContents(age)]),
    ...after(app, attachment_days, (age) => [purgeAttachments(age)]),
    ...after(app, delivery_days, purgeNews),
    ...purgeExpired(app),
  ];
}

/** Recounts the stored bytes of one account, another one each time, so that no miscount lasts. */
async function recountOne(app: App): Promise<void> {
  const user_id = await longestUncounted(app.db);
  if (user_id !== undefined) await recountStorage(app, user_id);
}

/** Returns the steps for rows older than `days`; none for 0 days, which means for ever. */
function after(app: App, days: number, steps: (age: Age) => Step[]): Step[] {
  const now = app.calmNow();
  return days === 0 ? [] : steps({ now, before: now - days * DAY_SECONDS });
}
