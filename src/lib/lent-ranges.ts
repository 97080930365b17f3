import type { SegmentRange } from "./segments.ts";

/** What a reader takes for the largest mail, 30 MB, by half a megabit a second, and a minute more. */
const LENT_SECONDS = 600;

/**
 * Ranges whose bytes are being sent from the disk as they are taken: nobody erases them meanwhile, or the rest of them
 * would come as zeros. Nothing tells when all has been taken, so each is lent for ten minutes.
 */
export interface LentRanges {
  lend(range: SegmentRange): void;
  has(range: SegmentRange): boolean;
  /** Those in a file, in no order. */
  inSegment(segment: number): SegmentRange[];
}

/** Creates an empty set of lent ranges; `steadyNow` is a clock in seconds that nobody sets. */
export function createLentRanges(steadyNow: () => number): LentRanges {
  /** In the order in which they end. */
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
