import { asRead } from "./as-read.ts";

/** How far the beginning of a web address is looked for; what is further inside of a word is inside of one. */
const MAX_CHARS = 2_000;
/** No address has them as such, whoever writes it down: browsers encode them. Brackets and apostrophes may stand in one. */
const ENDS_WORD = /[\s<>"]/;
const WORD = /[^\s<>"]+/g;
/** What stands before a host and belongs to the same address. */
const OWN_BEGINNING = /(?:(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,30}:)?[/\\]{0,2}(?:www\d{0,3}\.)?$/i;
/** What only an address has, wherever it stands in a word: programs glue words to it, and some scripts have no blanks. */
const BEGUN =
  /:[/\\]|[/\\]{2}|\b(?:https?|ftps?|wss?|file|mailto|tel|sms|sips?|xmpp|data|magnet):|\.[\p{L}\p{N}-]{2,63}(?::\d{1,5})?[/?#\\]|:\d{1,5}[/?#\\]|(?<!\d)(?:\d{1,3}\.){3}\d{1,3}[/?#\\]/iu;
/** In place of a blank or a bracket that was encoded in an address: it ends no word of whoever wrote that down. */
const GLUE = "\uE000";

/**
 * Whether a place in a text is inside of an address: that names itself as a whole, and none of the addresses, numbers and
 * names that whoever made it has put in.
 */
export function isInsideAddress(text: string, at: number): boolean {
  let start = at;
  while (start > 0 && !ENDS_WORD.test(text.charAt(start - 1))) {
    if (at - start >= MAX_CHARS) return true;
    start -= 1;
  }
  return BEGUN.test(text.slice(start, at).replace(OWN_BEGINNING, ""));
}

/** A text as programs read it, in which each address is still one word, whatever it has encoded. */
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
