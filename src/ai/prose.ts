/** Words of a key below which something is written down for people. */
const PROSE = new Set(
  "body text content contents description desc message note notes comment comments title subject summary html markdown md paragraph paragraphs details caption abstract agenda minutes transcript draft reply answer feedback observation observations thought".split(
    " ",
  ),
);
/** What else stands in such keys: `new_content`, `plainText`, `issue_body`. */
const BESIDE = new Set(
  "new old plain rich full short long initial page file issue event task item card post block".split(" "),
);
const MAX_KEY_CHARS = 60;

export function isProseKey(key: string): boolean {
  if (key.length > MAX_KEY_CHARS) return false;
  const words = key.split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/).map((word) => word.toLowerCase());
  return words.some((word) => PROSE.has(word)) && words.every((word) => PROSE.has(word) || BESIDE.has(word));
}

const FIELD = /^(?:from |[!-9;-~]{1,100}:)/i;
const CALENDAR = /^BEGIN:V/i;
const RECIPIENTS = /^(?:(?:resent-)?(?:to|cc|bcc)[ \t]*:|attendee[;:]).*/gim;

/**
 * To whom a text goes that begins as a mail does (RFC 5322 §2.1), by its header, or as an invitation (RFC 5545). One
 * that quotes a mail further down, as an issue may, is sent to nobody.
 */
export function recipientsIn(text: string): string {
  const lines = text.replaceAll(/\r\n?/g, "\n").trimStart();
  if (!FIELD.test(lines)) return "";
  const fields = CALENDAR.test(lines)
    ? lines.replaceAll(/\n[ \t]/g, "")
    : lines
        .slice(0, lines.includes("\n\n") ? lines.indexOf("\n\n") : undefined)
        .replaceAll(/\n(?=[ \t])/g, "");
  return (fields.match(RECIPIENTS) ?? []).join("\n");
}
