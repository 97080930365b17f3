import { HOUR_MS, MINUTE_MS } from "./durations.ts";
/** Corrections of the machine's clock up to this size harm nobody. */
const SMALL_MS = 10 * MINUTE_MS;
/** How long the machine's clock has to keep another time until that is believed. */
const TRIAL_MS = HOUR_MS;
/** How long a server may stand still, so that the time it starts at is believed at once. */
const STANDSTILL_MS = 12 * HOUR_MS;

/** The time of a calm clock and of the machine's own clock at one moment, in milliseconds since the epoch. */
export interface KeptTime {
  calm_ms: number;
  wall_ms: number;
}

export interface CalmClock {
  /** Milliseconds since the epoch. */
  nowMs: () => number;
  /** How many seconds the machine's clock is ahead by, as long as that is not believed; else undefined. */
  doubtSeconds: () => number | undefined;
  kept: () => KeptTime;
}

interface Trial {
  /** The machine's clock less the steady one. */
  offset_ms: number;
  /** On the steady clock. */
  since_ms: number;
}

/**
 * A clock that follows the machine's clock but none of its leaps: after a leap it goes on by `steadyMs`, which nobody
 * sets, until the new time has stayed for an hour in which somebody looked. After a restart it goes on from `kept`.
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

/** Takes the time that the server was off from the machine's clock, where that is possible. */
function afterStandstill({ calm_ms, wall_ms }: KeptTime, wall: number): number {
  const passed = wall - wall_ms;
  return passed >= 0 && passed <= STANDSTILL_MS ? calm_ms + passed : calm_ms;
}
