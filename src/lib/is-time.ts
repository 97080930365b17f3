/** The last second that a `Date` can tell. */
const LAST = 8_640_000_000_000;

/** Whether a stored second is a time: a damaged disk may leave another number, or a text. */
export function isTime(second: unknown): second is number {
  return typeof second === "number" && Math.abs(second) <= LAST;
}
