const CARD = /^\s*BEGIN:(?:VCALENDAR|VCARD)\r?\n/i;
/** Its registered form has slashes (RFC 5545 §3.7.3, ISO 9070), as the beginning of an address without a scheme has. */
const PRODUCT = /(?<=[^=\r]\r?\n)PRODID:[^\r\n]*/gi;
/** What stands before a part of that name which is no path. */
const PART = /(?<![:/\\])\/\/(?=[A-Za-z][^/\\]*(?:\/\/|$))/g;
/** Alone on its line: what is joined to it could be something else. */
const ID = /(?<=[^=\r]\r?\n)(UID:)([^\s@:/\\<>"']{1,200}@[^\s@:/\\<>"']{1,200})(?=\r?\n\S)/gi;

/**
 * Returns a calendar or a contact card without what looks like an address in it and is none: the name of the program
 * that made it, and its id. Nothing is ever fetched from those, or sent there. A host in the name of the program stays.
 */
export function withoutCardIds(text: string, isKept: (id: string) => boolean): string {
  if (!CARD.test(text)) return text;
  return text
    .replaceAll(PRODUCT, (line) => line.replaceAll(PART, "|"))
    .replaceAll(ID, (line, name: string, id: string) => (isKept(id) ? line : name));
}
