import { asRead } from "./as-read.ts";

/** How many characters back the beginning of a URL is searched; a place further inside a word counts as inside. */
const MAX_CHARS = 2_000;
/** Characters that end a URL, because browsers encode them. Brackets and apostrophes do not. */
const ENDS_WORD = /[\s<>"]/;
const WORD = /[^\s<>"]+/g;
/** The beginning of a URL up to its host. */
const OWN_BEGINNING = /(?:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}:)?[/\\]{0,2}(?:www\d{0,3}\.)?$/i;
/**
 * Signs that only URLs and mail addresses have. They count anywhere in a word, because programs attach words to URLs,
 * and some scripts have no spaces.
 */
const BEGUN =
  /:[/\\]|[/\\]{2}|\b(?:https?|ftps?|wss?|file|mailto|tel|sms|sips?|xmpp|data|magnet):|\.[\p{L}\p{N}-]{2,63}(?::\d{1,5})?[/?#\\]|:\d{1,5}[/?#\\]|(?<!\d)(?:\d{1,3}\.){3}\d{1,3}[/?#\\]/iu;
/** Replaces an encoded space or bracket in a URL: decoded, it would seem to end the URL. */
const GLUE = "\uE000";

/**
 * Returns whether a position in a text is inside a URL or address. It names itself as a whole; it does not name the
 * addresses, numbers and names within it, which its creator chose.
 */
export function isInsideAddress(text: string, at: number): boolean {
  let start = at;
  while (start > 0 && !ENDS_WORD.test(text.charAt(start - 1))) {
    if (at - start >= MAX_CHARS) return true;
    start -= 1;
  }
  return BEGUN.test(text.slice(start, at).replace(OWN_BEGINNING, ""));
}

/** Returns a text as programs read it (`asRead`) in which each URL stays one word, whatever is encoded in it. */
export function readKeepingAddresses(text: string): string {
  let read = "";
  let from = 0;
  for (const { 0: word, index } of text.matchAll(WORD)) {
    if (!/[%&\\=]|\P{ASCII}/u.test(word) || !BEGUN.test(word)) continue;
    read += asRead(text.slice(from, index)) + asRead(word).replaceAll(/[\s<>"]/g, GLUE);
    from = index + word.length;
  }
  return read + asRead(text.slice(from));
}
