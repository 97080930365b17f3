/** Work that took less than this is done anew for each who asks, in milliseconds. */
const CHEAP_MS = 50;
/** How much longer than it took an answer is handed to others as well. */
const SHARE = 10;
/** How long an answer may be old at the most, in milliseconds. */
const MAX_AGE_MS = 30_000;

/**
 * Returns a function that asks once for all who want the answer at the same time, and hands out an answer that took long
 * for a while: whoever asks again and again then takes a tenth of the time at the most. An error is handed to those
 * who wait, and is not kept.
 */
export function sharedAnswer<Answer>(ask: () => Promise<Answer>): () => Promise<Answer> {
  let asked: Promise<Answer> | undefined;
  let until = Number.POSITIVE_INFINITY;
  return () => {
    if (asked !== undefined && performance.now() < until) return asked;
    until = Number.POSITIVE_INFINITY;
    const began = performance.now();
    const mine = ask();
    asked = mine;
    mine.then(
      () => {
        const took = performance.now() - began;
        until = performance.now() + (took < CHEAP_MS ? 0 : Math.min(MAX_AGE_MS, took * SHARE));
      },
      () => (until = 0),
    );
    return mine;
  };
}
