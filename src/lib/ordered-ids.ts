import { DAY_MS } from "./durations.ts";

/** How far back the clock may be set with ids still in order. */
export const HELD_MS = 31 * DAY_MS;
/** The speed of this clock while it is ahead of the machine's: slower, so that the machine's catches up. */
const SPEED = 1 / 2;
const MAX_COUNT = 0xf_ff;
/** Added to a 12-bit number, it makes its hexadecimal form four digits long. */
const TWELVE_BITS = 0x10_00;

/** Times and ids that never go back. */
export interface OrderedIds {
  /** Returns milliseconds since the epoch, never less than before. */
  nowMs: () => number;
  /** Returns a UUIDv7 (RFC 9562 §5.7) of that time, greater than all before. */
  next: () => string;
}

/**
 * Creates ids by the machine's clock `wallMs`. When that is set back, the time here advances at half speed by the
 * monotonic clock `steadyMs` until `wallMs` has caught up. So new ids sort behind all older ones, also behind those
 * from before the start (`last_ms`). A clock set back by more than a month had been wrong before, and is followed at
 * once.
 */
export function createOrderedIds({
  wallMs,
  steadyMs,
  last_ms,
}: {
  wallMs: () => number;
  steadyMs: () => number;
  last_ms: number;
}): OrderedIds {
  let last = last_ms;
  let moved_at = steadyMs();
  let count = -1;
  let prefix = prefixOf(last);
  const move = (to: number, steady: number): void => {
    last = to;
    moved_at = steady;
    count = -1;
    prefix = prefixOf(to);
  };
  const nowMs = (): number => {
    const wall = Math.floor(wallMs());
    const steady = steadyMs();
    const next = Math.max(wall, Math.floor(last + (steady - moved_at) * SPEED));
    if (last - wall > HELD_MS) move(wall, steady);
    else if (next > last) move(next, steady);
    return last;
  };
  return {
    nowMs,
    next() {
      nowMs();
      count += 1;
      if (count > MAX_COUNT) {
        last += 1;
        count = 0;
        prefix = prefixOf(last);
      }
      return prefix + (count + TWELVE_BITS).toString(16).slice(1) + randomPart(last);
    },
  };
}

/**
 * Returns the first part of a UUIDv7, up to the 12 bits that count the ids of one millisecond (RFC 9562 §6.2, method
 * 1).
 */
function prefixOf(ms: number): string {
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7`;
}

function randomPart(ms: number): string {
  return Bun.randomUUIDv7("hex", ms).slice("00000000-0000-7000".length);
}
