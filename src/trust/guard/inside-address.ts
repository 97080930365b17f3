import { asRead } from "./as-read.ts";

/** Characters back to which the beginning of an address is looked for; a place further inside a word counts as inside. */
const MAX_CHARS = 2_000;
/** Characters that end an address, because browsers encode them. Brackets and apostrophes may stand in one. */
const ENDS_WORD = /[\s<>"]/;
const WORD = /[^\s<>"]+/g;
/** The beginning of an address up to its host. */
const OWN_BEGINNING = /(?:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}:)?[/\\]{0,2}(?:www\d{0,3}\.)?$/i;
/**
 * Signs that only an address has. They are looked for anywhere in a word, because programs glue words to addresses and
 * some scripts have no blanks.
 */
const BEGUN =
  /:[/\\]|[/\\]{2}|\b(?:https?|ftps?|wss?|file|mailto|tel|sms|sips?|xmpp|data|magnet):|\.[\p{L}\p{N}-]{2,63}(?::\d{1,5})?[/?#\\]|:\d{1,5}[/?#\\]|(?<!\d)(?:\d{1,3}\.){3}\d{1,3}[/?#\\]/iu;
/** Stands for a blank or a bracket that was encoded in an address: decoded, it would end the address for its reader only. */
const GLUE = "\uE000";

/**
 * Whether a position in a text is inside an address. An address names itself as a whole; it does not name the addresses,
 * numbers and names within it, which its maker has put there.
 */
export function isInsideAddress(text: string, at: number): boolean {
  let start = at;
  while (start > 0 && !ENDS_WORD.test(text.charAt(start - 1))) {
    if (at - start >= MAX_CHARS) return true;
    start -= 1;
  }
  return BEGUN.test(text.slice(start, at).replace(OWN_BEGINNING, ""));
}

/** Returns a text as programs read it, in which each address stays one word, whatever is encoded in it. */
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
