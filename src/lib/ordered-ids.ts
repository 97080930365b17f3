/** How far back the clock may be set while ids stay in order. */
export const HELD_MS = 31 * 86_400_000;
/** The speed of this clock while it is ahead of the other: slower, so that the other catches up. */
const SPEED = 1 / 2;
const MAX_COUNT = 0xf_ff;
/** Added to a number of 12 bits, it has four hexadecimal digits. */
const TWELVE_BITS = 0x10_00;

/** Moments and ids in the order in which they are asked for. */
export interface OrderedIds {
  /** Milliseconds since the epoch, never fewer than before. */
  nowMs: () => number;
  /** A UUID of version 7 (RFC 9562 §5.7) of that moment, greater than all before. */
  next: () => string;
}

/**
 * Follows the clock `wallMs`. Where that was set back it goes on half as fast by `steadyMs`, which nobody sets, until
 * `wallMs` has caught up, so that new ids come behind older ones, also behind those from before the start (`last_ms`). A
 * clock that was set back by more than a month had been wrong before, and is followed.
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

/** Up to the 12 bits behind the version, which count those of one millisecond (RFC 9562 §6.2, method 1). */
function prefixOf(ms: number): string {
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7`;
}

function randomPart(ms: number): string {
  return Bun.randomUUIDv7("hex", ms).slice("00000000-0000-7000".length);
}
