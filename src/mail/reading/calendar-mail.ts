import type { MailAttachment } from "./parse.ts";
import type { Part } from "./parse-structure.ts";

/** RFC 5546 §1.4: methods of what a calendar program writes about an event that somebody else has made. */
const ANSWERS = /^(reply|counter|refresh|declinecounter)$/i;
const CALENDAR = /^text\/(x-v)?calendar\b/;
const CALENDAR_FILE = /^(text\/(x-v)?calendar|application\/ics)\b/;
/** RFC 5545 §3.7.2, once folded lines are whole again. */
const METHOD = /^method[;:][^\n]{0,500}$/gim;

/** Whether a part says that a calendar program wrote the mail around it, and not only that a person attached a file. */
export function isCalendarMail(part: Part): boolean {
  const { contentType, node, parent } = part;
  if (!CALENDAR.test(contentType || "")) return false;
  // Many programs call a file that a person attached inline, or say nothing about it.
  const file = node.disposition === "attachment" || Boolean(node.filename);
  const attached = file && /^multipart\/mixed\b/.test(parent?.contentType || "");
  return !attached || ANSWERS.test(methodOf(part));
}

/** The same of the file itself, whatever its part is called. */
export function isCalendarAnswer({ content_type, filename, bytes }: MailAttachment): boolean {
  if (!CALENDAR_FILE.test(content_type) && !/\.ics$/i.test(filename)) return false;
  const text = Buffer.from(bytes).toString("latin1").replaceAll("\0", "");
  const lines = text.replaceAll(/\r\n?/g, "\n").replaceAll(/\n[ \t]/g, "");
  return (lines.match(METHOD) ?? []).some((line) =>
    ANSWERS.test(line.slice(line.lastIndexOf(":") + 1).trim()),
  );
}

/** RFC 6047 §2.4: the parameter of the part's type. */
function methodOf({ headers }: Part): string {
  const type = headers.get("content-type") as { params?: Record<string, string> } | undefined;
  return type?.params?.["method"]?.trim() ?? "";
}
