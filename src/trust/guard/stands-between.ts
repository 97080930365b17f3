const MAX_AFTER_CHARS = 20;
/** A longer place is no address, and one that stands in so many others is not meant. */
const MAX_PLACE_CHARS = 4_000;
const MAX_OCCURRENCES = 1_000;

interface Ends {
  /** What must not stand before it. */
  before: RegExp;
  after: RegExp;
  /** Whether it may be this one. */
  accepts?: (at: number) => boolean;
  /** How many are looked at, and whether it counts as standing there where there are more of them. */
  most?: { count: number; stands: boolean };
}

/** Whether a text stands in another one with nothing of `before` before it and with `after` behind it. */
export function standsBetween(text: string, wanted: string, ends: Ends): boolean {
  if (wanted === "" || wanted.length > MAX_PLACE_CHARS) return false;
  const { count, stands } = ends.most ?? { count: MAX_OCCURRENCES, stands: false };
  let left = count;
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) {
    if (left === 0) return stands;
    left -= 1;
    const behind = at + wanted.length;
    if (
      !ends.before.test(text.charAt(at - 1)) &&
      ends.after.test(text.slice(behind, behind + MAX_AFTER_CHARS)) &&
      ends.accepts?.(at) !== false
    )
      return true;
  }
  return false;
}
