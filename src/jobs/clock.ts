import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { JobKind } from "./kinds.ts";
import { PAUSED_AT } from "./paused.ts";
import type { JobHandlers } from "./run-job.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../lib/durations.ts";

/** Smaller steps are usual when a clock is set right. */
const LEAP_SECONDS = 60;
/** No job has to wait for longer than this, unless its own handler plans it. */
const LONGEST_WAIT_SECONDS = 2 * DAY_SECONDS;

/**
 * Returns a function that looks at the clock at each call, and says in the log that it was set. Once `app.now` has gone
 * back, what was due at a time of the former clock is tried now, or planned anew: too early costs one try, too late may
 * be years.
 */
export function watchClock(app: App, handlers: JobHandlers): () => Promise<void> {
  const leapOfWall = leapsOf(() => app.wallMs() / 1_000 - app.steadyNow());
  const leapOfNow = leapsOf(() => app.now() - app.steadyNow());
  let doubted = false;
  return async () => {
    const set_by = leapOfWall();
    if (set_by !== 0) app.log.warn({ seconds: set_by }, "the clock of this machine was set to another time");
    const doubt = clockWarning(app);
    if (doubt !== undefined && (!doubted || set_by !== 0)) app.log.warn(doubt);
    if (doubt === undefined && doubted) app.log.info("the clock of this machine is believed again");
    doubted = doubt !== undefined;
    const leap = leapOfNow();
    if (leap < 0) await app.write((tx) => planAnew(app, tx, { handlers, after: app.now() }));
    if (leap !== 0) app.worker?.wakeAll();
  };
}

/**
 * Returns a function that tells by how much an offset that should stay has changed since its last call; 0 where that is
 * little.
 */
function leapsOf(offset: () => number): () => number {
  let known = offset();
  return () => {
    const leap = Math.round(offset() - known);
    known += leap;
    return Math.abs(leap) <= LEAP_SECONDS ? 0 : leap;
  };
}

/** Returns what the operator has to know of a clock that is not believed; undefined while the clock is believed. */
export function clockWarning({ calm }: Pick<App, "calm">): string | undefined {
  const seconds = calm.doubtSeconds();
  if (seconds === undefined) return undefined;
  const off = `${spanOf(Math.abs(seconds))} ${seconds > 0 ? "ahead of" : "behind"}`;
  return `The clock of this machine has leapt: it is ${off} the time that this server has counted. Until it has stayed so for an hour, nothing is deleted, forgotten or given up by it. Set it right if it is wrong; if the server stood still for so long, or a backup was restored, there is nothing to do.`;
}

function spanOf(seconds: number): string {
  const hours = seconds / HOUR_SECONDS;
  if (hours >= 48) return `${Math.round(hours / 24)} days`;
  return hours >= 2 ? `${Math.round(hours)} hours` : `${Math.round(seconds / 60)} minutes`;
}

/** Plans anew at a start, when nobody knows what the clock was before: what lies too far ahead is tried now. */
export async function planAtStart(app: App, tx: Db, handlers: JobHandlers): Promise<void> {
  await planAnew(app, tx, { handlers, after: app.now() + LONGEST_WAIT_SECONDS });
}

async function planAnew(
  app: App,
  tx: Db,
  { handlers, after }: { handlers: JobHandlers; after: number },
): Promise<void> {
  const now = app.now();
  const planned = (Object.keys(handlers) as JobKind[]).filter((kind) => handlers[kind].plan);
  await tx
    .updateTable("jobs")
    .set({ run_at: now })
    .where("status", "=", "pending")
    .where("kind", "not in", planned)
    .where("run_at", ">", after)
    // Jobs of a paused inbox wait for no time, and are left alone.
    .where("run_at", "<", PAUSED_AT)
    .execute();
  await tx
    .updateTable("webhook_deliveries")
    .set({ next_attempt_at: now })
    // By endpoint, because an index has what waits for each; looking through all deliveries would take long.
    .where("endpoint_id", "in", tx.selectFrom("webhook_endpoints").select("id"))
    .where("status", "=", "pending")
    .where("next_attempt_at", ">", after)
    .execute();
  for (const kind of planned) await handlers[kind].plan?.(app, tx);
}
