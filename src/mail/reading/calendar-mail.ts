import type { MailAttachment } from "./parse.ts";
import type { Part } from "./parse-structure.ts";

/** Methods of calendar programs that answer an event which somebody else has made (RFC 5546 §1.4). */
const ANSWERS = /^(reply|counter|refresh|declinecounter)$/i;
const CALENDAR = /^text\/(x-v)?calendar\b/;
const CALENDAR_FILE = /^(text\/(x-v)?calendar|application\/ics)\b/;
/** The METHOD line of a calendar (RFC 5545 §3.7.2), once folded lines are joined. */
const METHOD = /^method[;:][^\n]{0,500}$/gim;

/**
 * Returns whether a part shows that a calendar program wrote the mail. A calendar file that a person attached does not.
 */
export function isCalendarMail(part: Part): boolean {
  const { contentType, node, parent } = part;
  if (!CALENDAR.test(contentType || "")) return false;
  // Many programs mark a file that a person attached as inline, or not at all.
  const file = node.disposition === "attachment" || Boolean(node.filename);
  const attached = file && /^multipart\/mixed\b/.test(parent?.contentType || "");
  return !attached || ANSWERS.test(methodOf(part));
}

/** Classes of what Outlook writes about a meeting (MS-OXOCAL §2.2), as Exchange and as older servers name them. */
const MEETING_CLASS = /schedule|meeting|appointment/i;
/** The line that Outlook draws below the place and the time of a meeting, which its organiser has chosen. */
const MEETING_HEAD_CHARS = 2_000;
const MEETING_HEAD_LINES = 8;
const MEETING_RULE = /^[ \t]*(?:\*~){5,20}\*?[ \t]*$/m;

/**
 * Returns whether Outlook wrote a mail about a meeting, by the message class in its winmail.dat or by a line in its
 * text.
 */
export function isMeetingMail(
  packed: readonly { message_class: string; attached: boolean }[],
  own_words: string,
): boolean {
  const is_meeting = packed.some(
    ({ message_class, attached }) => !attached && MEETING_CLASS.test(message_class),
  );
  return is_meeting || hasMeetingHead(own_words);
}

/** Returns whether lines like fields precede Outlook's separator: others draw such lines too. */
function hasMeetingHead(text: string): boolean {
  const at = text.search(MEETING_RULE);
  if (at === -1) return false;
  const above = text
    .slice(Math.max(0, at - MEETING_HEAD_CHARS), at)
    .split("\n")
    .slice(-MEETING_HEAD_LINES);
  return above.some((line) => /^[ \t]*\p{L}[\p{L} ]{1,20}[:：][ \t]*\S/u.test(line));
}

/** Returns whether a file is an answer of a calendar program, whatever its declared type. */
export function isCalendarAnswer({ content_type, filename, bytes }: MailAttachment): boolean {
  if (!CALENDAR_FILE.test(content_type) && !/\.ics$/i.test(filename)) return false;
  const text = Buffer.from(bytes).toString("latin1").replaceAll("\0", "");
  const lines = text.replaceAll(/\r\n?/g, "\n").replaceAll(/\n[ \t]/g, "");
  return (lines.match(METHOD) ?? []).some((line) =>
    ANSWERS.test(line.slice(line.lastIndexOf(":") + 1).trim()),
  );
}

/** Returns the `method` parameter of the part's type (RFC 6047 §2.4). */
function methodOf({ headers }: Part): string {
  const type = headers.get("content-type") as { params?: Record<string, string> } | undefined;
  return type?.params?.["method"]?.trim() ?? "";
}
