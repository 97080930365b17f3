const MAX_AFTER_CHARS = 20;
/** A longer place is no address, and one that occurs inside so many others is not meant. */
const MAX_PLACE_CHARS = 4_000;
const MAX_OCCURRENCES = 1_000;

interface Ends {
  /** What must not precede it. */
  before: RegExp;
  after: RegExp;
  /** Whether this occurrence may count. */
  accepts?: (at: number) => boolean;
  /** How many occurrences are examined, and the result if there are more. */
  most?: { count: number; stands: boolean };
}

/**
 * Returns whether `wanted` occurs in a text without a match of `before` in front of it and with a match of `after`
 * behind it.
 */
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
