/** How far the beginning of a web address is looked for. */
const MAX_CHARS = 2_000;
const ENDS_WORD = /[\s<>"'(){}[\]|]/;
/** The beginning of a web address, with something of it behind its scheme, or with a path behind the name of a site. */
const BEGUN = /^(?:[a-z][a-z0-9+.-]{0,30}:\/\/(?!(?:www\.)?$)|[\p{L}\p{N}.-]{1,100}\.\p{L}{2,63}[/?#])/iu;

/**
 * Whether a place in a text is inside of a web address: that names itself as a whole, and none of the addresses, numbers
 * and names that whoever made it has put in.
 */
export function isInsideAddress(text: string, at: number): boolean {
  let start = at;
  while (start > 0 && at - start < MAX_CHARS && !ENDS_WORD.test(text.charAt(start - 1))) start -= 1;
  return BEGUN.test(text.slice(start, at));
}
