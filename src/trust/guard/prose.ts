import type { Part } from "./packed/part.ts";

/** Words in parameter names for text that people read. */
const PROSE = new Set(
  "body text content contents description desc message note notes comment comments title subject summary html markdown md paragraph paragraphs details caption abstract agenda minutes transcript draft reply answer feedback observation observations thought".split(
    " ",
  ),
);
/** Words that may stand beside them: `new_content`, `plainText`, `issue_body`. */
const BESIDE = new Set(
  "new old plain rich full short long initial page file issue event task item card post block".split(" "),
);
/**
 * Parameters of a single line: mails and calendars have these as header fields, where a second line would be another
 * field.
 */
const LINE = new Set(["subject", "title"]);
/** A single line too, unless the parameter's name says that it is a text. */
const SHORT_TEXT = "summary";
/** Words that are prose where nothing is lost by it, and a value of another kind elsewhere. */
const MORE_PROSE = new Set("mail email msg response data value".split(" "));
const MAX_KEY_CHARS = 60;

export function isProseKey(key: string): boolean {
  if (key.length > MAX_KEY_CHARS) return false;
  const words = wordsInKey(key);
  return words.some((word) => PROSE.has(word)) && words.every((word) => PROSE.has(word) || BESIDE.has(word));
}

/** Returns whether a parameter's name speaks of a text at all: `email_body`, `reply_msg`. */
export function mayBeProse(key: string): boolean {
  return wordsInKey(key).some((word) => PROSE.has(word) || MORE_PROSE.has(word));
}

/** Returns whether a parameter's value is a single line: `subject`, `event_title`, `summary`. */
export function isLineKey(key: string): boolean {
  const words = wordsInKey(key);
  if (words.some((word) => LINE.has(word))) return true;
  return words.includes(SHORT_TEXT) && words.every((word) => word === SHORT_TEXT || !PROSE.has(word));
}

/** Characters that some program takes for the end of a line or of a text. */
const LINE_BREAK = /(?!\t)[\p{Cc}\u2028\u2029]/gu;

/** Returns whether a text has anything behind its first line. */
export function breaksLine(text: string): boolean {
  return text.trim().search(LINE_BREAK) !== -1;
}

/** Returns the words of a parameter's name in lower case, however they are joined: `image_url`, `imageUrl`. */
export function wordsInKey(key: string): string[] {
  const words = key.slice(0, MAX_KEY_CHARS).split(/[^A-Za-z]+|(?<=[a-z])(?=[A-Z])/);
  return words.map((word) => word.toLowerCase());
}

const MAIL_FIELD = /^([A-Za-z][A-Za-z0-9-]{0,60})[ \t]*:(.*)$/;
/** Header fields for recipients, for the address of a reply, and for senders. */
const PEOPLE_FIELD = /^(?!in-reply-to$)(?:[a-z-]{0,40}-)?(?:to|cc|bcc|from|sender|path)$/i;

/**
 * Returns the parts of a text that a program would send as a mail: its people and subject, and its text, which is
 * prose. Undefined for other texts.
 */
export function fieldsOfMail(text: string): Part[] | undefined {
  const lines = text.replaceAll(/\r\n?/g, "\n").trimStart();
  if (!MAIL_START.test(lines)) return undefined;
  const gap = lines.indexOf("\n\n");
  const head = lines.slice(0, gap < 0 ? undefined : gap).replaceAll(/\n(?=[ \t])/g, "");
  const fields = head.split("\n").flatMap((line): Part[] => {
    const [, name = "", value = ""] = MAIL_FIELD.exec(line) ?? [];
    return PEOPLE_FIELD.test(name) ? [{ key: "to", value }] : [];
  });
  if (fields.length === 0) return undefined;
  return [...fields, { key: "body", value: gap < 0 ? "" : lines.slice(gap + 2) }];
}

const MAIL_START = /^[A-Za-z][A-Za-z0-9-]{0,60}[ \t]*:/;
const FIELD = /^(?:from |[!-9;-~]{1,100}[ \t]*:)/i;
const CALENDAR = /^BEGIN:V/i;
/** Like PEOPLE_FIELD without the senders: storing a mail of theirs writes to nobody. */
const RECIPIENTS =
  /^(?:(?!in-reply-to)(?:[a-z-]{0,40}-)?(?:to|cc|bcc)[ \t]*:|return-path[ \t]*:|(?:attendee|organizer)[;:]).*/gim;

/**
 * Returns the recipients of a text that begins like a mail (RFC 5322 §2.1), from its header, or like an invitation (RFC
 * 5545). A text that quotes a mail further down, such as an issue, has none.
 */
export function recipientsIn(text: string): string {
  const lines = text.replaceAll(/\r\n?/g, "\n").trimStart();
  if (!FIELD.test(lines)) return "";
  const fields = CALENDAR.test(lines)
    ? lines.replaceAll(/\n[ \t]/g, "")
    : lines
        .slice(0, lines.includes("\n\n") ? lines.indexOf("\n\n") : undefined)
        .replaceAll(/\n(?=[ \t])/g, "");
  return (fields.replaceAll(LINE_BREAK, "\n").match(RECIPIENTS) ?? []).join("\n");
}
