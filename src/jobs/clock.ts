import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { JobKind } from "./kinds.ts";
import { PAUSED_AT } from "./paused.ts";
import type { JobHandlers } from "./run-job.ts";
import { DAY_SECONDS, HOUR_SECONDS } from "../lib/durations.ts";

/** Corrections of the clock below this size are usual. */
const LEAP_SECONDS = 60;
/** No job waits for longer than this, or than the longest wait of the configuration, unless its own handler plans it. */
const LONGEST_WAIT_SECONDS = 2 * DAY_SECONDS;

/**
 * Returns a function that checks at each call whether the clock was set, and logs that. When `app.now` has gone back, what was
 * planned by the former time is moved by as much, or planned again: each attempt counts, and a clock may be set many times.
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
    if (leap < 0) await app.write((tx) => planAnew(app, tx, { handlers, after: app.now(), leap }));
    if (leap !== 0) app.worker?.wakeAll();
  };
}

/**
 * Returns a function that returns by how much an offset that should be constant has changed since its last call; 0 for
 * a small change.
 */
function leapsOf(offset: () => number): () => number {
  let known = offset();
  return () => {
    const leap = Math.round(offset() - known);
    known += leap;
    return Math.abs(leap) <= LEAP_SECONDS ? 0 : leap;
  };
}

/** Returns a warning about a leap of the clock that is not accepted yet; otherwise undefined. */
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

/** Corrects job times at a start, when the former clock is unknown: jobs planned too far ahead are tried now. */
export async function planAtStart(app: App, tx: Db, handlers: JobHandlers): Promise<void> {
  const { outbound, webhooks, routing } = app.config;
  const longest = Math.max(LONGEST_WAIT_SECONDS, ...outbound.retry, ...webhooks.backoff, ...routing.retry);
  await planAnew(app, tx, { handlers, after: app.now() + longest });
}

async function planAnew(
  app: App,
  tx: Db,
  { handlers, after, leap }: { handlers: JobHandlers; after: number; leap?: number },
): Promise<void> {
  const now = app.now();
  const planned = (Object.keys(handlers) as JobKind[]).filter((kind) => handlers[kind].plan);
  await tx
    .updateTable("jobs")
    .set((eb) => ({
      // It comes as soon as before the leap; at once where that is not known.
      run_at: leap === undefined ? now : eb.fn<number>("max", [eb.val(now), eb("run_at", "+", leap)]),
    }))
    .where("status", "=", "pending")
    .where("kind", "not in", planned)
    .where("run_at", ">", after)
    // Jobs of a paused inbox wait for no time, and are left alone.
    .where("run_at", "<", PAUSED_AT)
    .execute();
  await tx
    .updateTable("webhook_deliveries")
    .set((eb) => ({
      next_attempt_at:
        leap === undefined ? now : eb.fn<number>("max", [eb.val(now), eb("next_attempt_at", "+", leap)]),
    }))
    // By endpoint, because an index finds the waiting deliveries of each; scanning all deliveries would take long.
    .where("endpoint_id", "in", tx.selectFrom("webhook_endpoints").select("id"))
    .where("status", "=", "pending")
    .where("next_attempt_at", ">", after)
    .execute();
  for (const kind of planned) await handlers[kind].plan?.(app, tx);
}
