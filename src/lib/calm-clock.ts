import { HOUR_MS, MINUTE_MS } from "./durations.ts";
/** Corrections of the machine's clock up to this size are followed at once. */
const SMALL_MS = 10 * MINUTE_MS;
/** How long the machine's clock has to keep its new time until that is followed. */
const TRIAL_MS = HOUR_MS;
/** After at most this long without a running server, the time at the start is accepted at once. */
const STANDSTILL_MS = 12 * HOUR_MS;

/** The time of a calm clock and of the machine's own clock at one moment, in milliseconds since the epoch. */
export interface KeptTime {
  calm_ms: number;
  wall_ms: number;
}

export interface CalmClock {
  /** Milliseconds since the epoch. */
  nowMs: () => number;
  /**
   * Returns how many seconds the machine's clock is ahead of this one while its leap is not accepted; otherwise
   * undefined.
   */
  doubtSeconds: () => number | undefined;
  kept: () => KeptTime;
}

interface Trial {
  /** Difference between the machine's clock and the steady one. */
  offset_ms: number;
  /** On the steady clock. */
  since_ms: number;
}

/**
 * Creates a clock that follows the machine's clock without its leaps, in either direction. After a leap it continues by
 * `steadyMs`, the monotonic clock, until the new time has held for an hour during which somebody read it. After a
 * restart it continues from `kept`.
 */
export function createCalmClock({
  wallMs,
  steadyMs,
  kept,
}: {
  wallMs: () => number;
  steadyMs: () => number;
  kept: KeptTime | undefined;
}): CalmClock {
  let at = {
    calm_ms: kept === undefined ? wallMs() : afterStandstill(kept, wallMs()),
    steady_ms: steadyMs(),
  };
  let trial: Trial | undefined;

  const believe = (wall: number, steady: number): number => {
    at = { calm_ms: wall, steady_ms: steady };
    trial = undefined;
    return wall;
  };
  const nowMs = (): number => {
    const wall = wallMs();
    const steady = steadyMs();
    const calm = at.calm_ms + steady - at.steady_ms;
    if (Math.abs(wall - calm) <= SMALL_MS) return believe(wall, steady);
    const offset_ms = wall - steady;
    if (trial === undefined || Math.abs(offset_ms - trial.offset_ms) > SMALL_MS)
      trial = { offset_ms, since_ms: steady };
    return steady - trial.since_ms >= TRIAL_MS ? believe(wall, steady) : calm;
  };
  return {
    nowMs,
    doubtSeconds() {
      const off = wallMs() - nowMs();
      return Math.abs(off) > SMALL_MS ? Math.round(off / 1_000) : undefined;
    },
    kept: () => ({ calm_ms: nowMs(), wall_ms: wallMs() }),
  };
}

/**
 * Returns the time at the start: the stored time plus how long the server was off by the machine's clock, where that is
 * plausible.
 */
function afterStandstill({ calm_ms, wall_ms }: KeptTime, wall: number): number {
  const passed = wall - wall_ms;
  return passed >= 0 && passed <= STANDSTILL_MS ? calm_ms + passed : calm_ms;
}
