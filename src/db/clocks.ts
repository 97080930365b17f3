import { type CalmClock, createCalmClock } from "../lib/calm-clock.ts";
import { createOrderedIds, HELD_MS } from "../lib/ordered-ids.ts";
import type { Db } from "./database.ts";
import { newestMessageMs, readKeptTime } from "./kept-clock.ts";

export interface Clocks {
  /**
   * Unix seconds, for times that are stored, shown or planned. When the machine's clock is set back by more than ten
   * minutes, `now` follows once it has stayed there for an hour. `now` is never before `calmNow`.
   */
  now: () => number;
  /**
   * Returns the first unix second at which `seconds` have passed for certain. `now() + seconds` would be up to a second
   * early, because `now` drops fractions.
   */
  after: (seconds: number) => number;
  /** Milliseconds since the epoch. */
  nowMs: () => number;
  /**
   * Seconds of the monotonic clock, comparable within this process only. Leases use it, so that setting the machine's
   * clock does not end them.
   */
  steadyNow: () => number;
  steadyAfter: (seconds: number) => number;
  /**
   * Unix seconds for measuring the age of what was stored with `now`, where a wrong age would do something twice or
   * never: duplicates, counts, deletion, giving up. Unlike `now` they do not leap ahead with the machine's clock, see
   * `createCalmClock`. Sessions, codes and whatever else must end for safety end by `now`.
   */
  calmNow: () => number;
  /** As `after`, on the clock of `calmNow`. */
  calmAfter: (seconds: number) => number;
  calm: CalmClock;
  /** The machine's own clock in milliseconds, for times that others compare with their clock. */
  wallMs: () => number;
  /**
   * Returns an id that sorts behind all earlier ones, even when the clock was set back. `orderNow` is the unix second
   * in such an id.
   */
  newId: () => string;
  orderNow: () => number;
}

/** Returns the clocks of this process, which continue from the time that the last process stored. */
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
    calmAfter: (seconds) => Math.ceil((calm.nowMs() + seconds * 1_000) / 1_000),
    wallMs,
    newId: ids.next,
    orderNow: () => Math.floor(ids.nowMs() / 1_000),
  };
}
