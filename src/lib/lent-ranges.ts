import type { SegmentRange } from "./segments.ts";

/**
 * How long a range stays protected: as long as a client needs for the largest mail, 30 MB, at half a megabit a second,
 * and a minute more.
 */
const LENT_SECONDS = 600;

/**
 * Ranges that clients are downloading. They must not be erased meanwhile, or the rest would arrive as zeros. Bun does
 * not tell when a download ends, so each range is protected for ten minutes.
 */
export interface LentRanges {
  lend(range: SegmentRange): void;
  has(range: SegmentRange): boolean;
  /** Returns the protected ranges in a segment, unordered. */
  inSegment(segment: number): SegmentRange[];
}

/** Creates an empty set of protected ranges; `steadyNow` is a monotonic clock in seconds. */
export function createLentRanges(steadyNow: () => number): LentRanges {
  /** Sorted by when their protection ends. */
  const lent = new Map<string, { range: SegmentRange; until: number }>();
  const forget = (): void => {
    for (const [key, { until }] of lent) {
      if (until > steadyNow()) return;
      lent.delete(key);
    }
  };
  return {
    lend(range) {
      forget();
      lent.delete(keyOf(range));
      lent.set(keyOf(range), { range, until: steadyNow() + LENT_SECONDS });
    },
    has(range) {
      forget();
      return lent.has(keyOf(range));
    },
    inSegment(segment) {
      forget();
      return [...lent.values()].flatMap(({ range }) => (range.segment === segment ? [range] : []));
    },
  };
}

function keyOf({ segment, offset }: SegmentRange): string {
  return `${segment} ${offset}`;
}
