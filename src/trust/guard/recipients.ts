import { readHeaders } from "../../mail/reading/headers.ts";
import { asRead } from "./as-read.ts";
import { mayHaveAddress } from "./prose-addresses.ts";

/**
 * What programs call those whom something is sent to, and where answers go; and what stands behind it, which no sentence has
 * there.
 */
const NAME =
  /(?<![\p{L}\p{N}]|in-reply-)(?:(?:to|cc|bcc|rcpt|recipients?)(?:[_ -]?(?:e?-?mails?|address(?:es)?|list|recipients?))?|return-path|attendee|organizer)(?![\p{L}\p{N}])(?=[^\p{L}\p{N}@\n]{0,20}[:=>;|{[]|\(|["'][ \t\r]{0,5}[,\n])/giu;
/** The senders: who answers such a mail writes to them. */
const SENDER = /(?<![\p{L}\p{N}])(?:from|sender|path)(?=[^\p{L}\p{N}@\n]{0,20}[:=>;|{[])/giu;
/** Recipients as the end of a longer word: `mailTo`, `sendCc`. */
const CAMEL =
  /(?<=[a-z])(?:To|Cc|Bcc)(?:E?[Mm]ails?|Address(?:es)?)?(?=[^\p{L}\p{N}@\n]{0,20}[:=>;|{[]|\(|["'][ \t\r]{0,5}[,\n])/gu;

/** Blank lines and marks between a name and what it stands for, as in a list or a form. */
const BETWEEN = /[^\p{L}\p{N}@]{0,200}/uy;
/** An end of a line for some program. */
const LINE_END = /[\n\r\v\f\u0085\u2028\u2029]/;
const EMPTY_LINE = /\n\r?\n/;
/** A line that goes on: it is folded, an item, or stands behind a comma or an open bracket. */
const GOES_ON = /^[ \t]|^["'*<-]/;
const IS_OPEN = /[,;[({]\s*$/;

/** A name with its value, at the beginning of a line. */
const FIELD = /^[^\p{L}\p{N}\n]{0,20}[\p{L}_$][^\s:=(]*[ \t\r]*(?:[=(]|:(?!\/\/))/mu;
/** A first line that begins something which programs read: front matter, a section, a block, a document. */
const OPENER = /^(?:\[[^\]\n]*\]|---|\+\+\+|```|[{()%]|<\?|<[^>\n]{0,500}\sxmlns)/;
/** A first line that names columns. */
const COLUMNS = /^[\w "'-]{1,40}(?:[,;\t|][\w "'-]{0,40}){1,50}$/;
const COLUMN =
  /(?<![\p{L}\p{N}])(?:to|cc|bcc|rcpt|recipients?)(?:[_ -](?:e?-?mails?|address(?:es)?))?["']?[ \t]{0,9}(?:[,;\t|]|$)/iu;
/** What programs look for in the midst of a text: a calendar, the field of a form, the words of SMTP, a mailbox. */
const WITHIN = [
  /^[ \t]{0,99}BEGIN:V/im,
  /^[ \t]{0,99}content-disposition/im,
  /\brcpt[ \t]{1,9}to/i,
  /^From [^\n]{1,300}\n[\w-]{1,60}:/m,
];
const CALENDAR = /BEGIN:V/i;

/** What stands where a program looks for recipients. */
export interface Recipients {
  value: string;
  /** Whether it is the value of a field of a header, in which programs join what stands apart. */
  is_field: boolean;
}

/**
 * Returns what a text may give as recipients to a program that reads it as a mail (RFC 5322 §2.1), an invitation (RFC 5545) or
 * in any other form with names and values. No form has to be recognised for it: what stands up to the first empty line counts
 * whatever comes before it, as programs skip what they do not know, and so does the rest unless the text begins as prose or is
 * surely a mail. A text that quotes a mail further down, such as an issue, has none.
 */
export function recipientsIn(text: string, { senders = false } = {}): Recipients[] {
  if (!mayHaveAddress(text)) return [];
  const lines = text.trimStart();
  const { head, found } = headOf(lines);
  const seen = unfolded(found ? head : lines);
  const [first = ""] = seen.split("\n", 1);
  if (COLUMNS.test(first.trim()) && COLUMN.test(first)) return [{ value: seen, is_field: false }];
  return valuesIn(seen, senders ? [NAME, CAMEL, SENDER] : [NAME, CAMEL]).filter(({ value }) =>
    asRead(value).includes("@"),
  );
}

/** The part of a text in which a name gives a recipient; not found where that is all of it. */
function headOf(lines: string): { head: string; found: boolean } {
  const end = EMPTY_LINE.exec(lines)?.index;
  const all = { head: lines, found: false };
  if (end === undefined || WITHIN.some((mark) => mark.test(lines))) return all;
  const head = lines.slice(0, end);
  const [first = ""] = head.split("\n", 1);
  if (isMailHeader(lines)) return { head, found: true };
  return FIELD.test(head) || OPENER.test(first) || COLUMNS.test(first.trim()) ? all : { head, found: true };
}

/** Whether every program sees the same header at the beginning of a text. */
function isMailHeader(text: string): boolean {
  const { fields, problem, complete } = readHeaders(Buffer.from(text));
  return complete && problem === null && fields.length > 0;
}

/** Folded lines as one. A calendar is folded within its words. */
function unfolded(text: string): string {
  return CALENDAR.test(text) ? text.replaceAll(/\r?\n[ \t]/g, "") : text.replaceAll(/\r?\n(?=[ \t])/g, "");
}

/** What stands behind each name, up to where its lines end. */
function valuesIn(text: string, names: RegExp[]): Recipients[] {
  const starts = names.flatMap((name) =>
    Array.from(text.matchAll(name), ({ 0: found, index }) => index + found.length),
  );
  const values: Recipients[] = [];
  let until = 0;
  for (const start of starts.toSorted((a, b) => a - b)) {
    if (start < until) continue;
    until = endOfValue(text, start);
    const value = text.slice(start, until);
    values.push({ value: value.replace(GIVEN_BY, ""), is_field: COLON.test(value) });
  }
  return values;
}

const COLON = /^[ \t\r]*:/;
const GIVEN_BY = /^["'\]\s]*[:=>({|;]?\s*/;

function endOfValue(text: string, start: number): number {
  BETWEEN.lastIndex = start;
  BETWEEN.exec(text);
  let end = lineEnd(text, BETWEEN.lastIndex);
  while (
    end < text.length &&
    (GOES_ON.test(text.charAt(end + 1)) || IS_OPEN.test(text.slice(Math.max(0, end - 20), end)))
  )
    end = lineEnd(text, end + 1);
  return end;
}

function lineEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) if (LINE_END.test(text.charAt(at))) return at;
  return text.length;
}
