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
}

/** Whether a text stands in another one with nothing of `before` before it and with `after` behind it. */
export function standsBetween(text: string, wanted: string, ends: Ends): boolean {
  if (wanted === "" || wanted.length > MAX_PLACE_CHARS) return false;
  let left = MAX_OCCURRENCES;
  for (let at = text.indexOf(wanted); at !== -1 && left > 0; at = text.indexOf(wanted, at + 1)) {
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
