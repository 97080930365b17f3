import { type CalmClock, createCalmClock } from "../lib/calm-clock.ts";
import { createOrderedIds, HELD_MS } from "../lib/ordered-ids.ts";
import type { Db } from "./database.ts";
import { newestMessageMs, readKeptTime } from "./kept-clock.ts";

export interface Clocks {
  /**
   * Unix seconds, for what is written down, shown and planned. Set back by more than ten minutes, the clock of the machine
   * is followed once it has stayed so for an hour: `now` is never before `calmNow`.
   */
  now: () => number;
  /**
   * The first unix second at which so many seconds have passed. With `now`, which is cut to the second, what waits or lives
   * for a time would end up to a second early.
   */
  after: (seconds: number) => number;
  /** Milliseconds since the epoch. */
  nowMs: () => number;
  /** Seconds of a clock that nobody sets, good for this process only: a lease must not end because the time was corrected. */
  steadyNow: () => number;
  steadyAfter: (seconds: number) => number;
  /**
   * Unix seconds for the ages of what was written down with `now`, where they decide whether something is done twice or
   * never: what is known again, counted, forgotten, deleted or given up. They do not leap ahead either, see
   * `createCalmClock`. What ends for safety, such as sessions and codes, ends by `now`.
   */
  calmNow: () => number;
  calm: CalmClock;
  /** The machine's own clock in milliseconds, for times that others compare with theirs. */
  wallMs: () => number;
  /** An id behind all that were made before, also when the clock was set back, and the unix second of that order. */
  newId: () => string;
  orderNow: () => number;
}

/** Returns the clocks of this process, which go on from where the last one was. */
export async function openClocks(
  db: Db,
  { wallMs, steadyMs = performance.now.bind(performance) }: { wallMs: () => number; steadyMs?: () => number },
): Promise<Clocks> {
  const calm = createCalmClock({ wallMs, steadyMs, kept: await readKeptTime(db) });
  const nowMs = (): number => Math.max(wallMs(), calm.nowMs());
  const last_ms = await newestMessageMs(db, { before_ms: nowMs() + HELD_MS });
  const ids = createOrderedIds({ wallMs: nowMs, steadyMs, last_ms });
  return {
    now: () => Math.floor(nowMs() / 1_000),
    after: (seconds) => Math.ceil((nowMs() + seconds * 1_000) / 1_000),
    nowMs,
    steadyNow: () => Math.floor(steadyMs() / 1_000),
    steadyAfter: (seconds) => Math.ceil((steadyMs() + seconds * 1_000) / 1_000),
    calm,
    calmNow: () => Math.floor(calm.nowMs() / 1_000),
    wallMs,
    newId: ids.next,
    orderNow: () => Math.floor(ids.nowMs() / 1_000),
  };
}
