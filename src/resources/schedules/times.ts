import { HOUR_SECONDS } from "../../lib/durations.ts";
import { nextTime } from "../../lib/cron.ts";

/** Why a schedule has ended by itself. */
export const ALL_TIMES_OVER = "All of its times have been.";

/** What of a schedule says when it runs. */
export interface Times {
  pattern: string | null;
  /** Unix seconds. */
  at: number | null;
  timezone: string;
  /** Unix seconds. */
  until: number | null;
}

/**
 * Returns up to `count` times after `after` (unix seconds), at least an hour apart, also where the clock is set back; none where
 * they are damaged.
 */
export function timesAfter({ pattern, at, timezone, until }: Times, after: number, count: number): number[] {
  if (at !== null) return at > after && at <= (until ?? at) ? [at] : [];
  if (pattern === null) return [];
  const times: number[] = [];
  let last = after;
  while (times.length < count) {
    const next = readableTime(pattern, last, timezone);
    if (next === undefined || (until !== null && next > until)) break;
    const [before] = times.slice(-1);
    if (before === undefined || next - before >= HOUR_SECONDS) times.push(next);
    last = next;
  }
  return times;
}

/** Returns the first time at least an hour after `last`, and after `now`; null if there is none. */
export function timeAfterRun(
  times: Times,
  { now, last }: { now: number; last: number | null },
): number | null {
  return timesAfter(times, Math.max(now, (last ?? 0) + HOUR_SECONDS - 1), 1)[0] ?? null;
}

/** Whether a damaged disk has left a pattern or a zone that is none. */
export function areDamaged({ pattern, timezone }: Times, now: number): boolean {
  return pattern !== null && readableTime(pattern, now, timezone) === undefined;
}

/** Times that were worked out: each takes milliseconds, and a list shows hundreds of them again and again. */
const worked_out = new Map<string, number>();
const MAX_WORKED_OUT = 10_000;

/** One damaged row must not keep the server from starting, or the other schedules from being shown. */
function readableTime(...of: Parameters<typeof nextTime>): number | undefined {
  const key = JSON.stringify(of);
  const known = worked_out.get(key);
  if (known !== undefined) return known;
  try {
    const next = nextTime(...of);
    if (worked_out.size >= MAX_WORKED_OUT) worked_out.clear();
    worked_out.set(key, next);
    return next;
  } catch {
    return undefined;
  }
}
