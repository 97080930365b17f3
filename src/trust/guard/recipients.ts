import type { HeaderField } from "../../mail/reading/header-block.ts";
import { readHeaders } from "../../mail/reading/headers.ts";
import { asRead } from "./as-read.ts";
import { mayHaveAddress } from "./prose-addresses.ts";

/**
 * What programs call those whom something is sent to, and where answers go; and what stands behind it, which no sentence has
 * there.
 */
const NAME =
  /(?<![\p{L}\p{N}]|in-reply-)(?:(?:to|cc|bcc|rcpt|recipients?)(?:[_ -]?(?:e?-?mails?|address(?:es)?|list|recipients?))?|return-path|attendee|organizer)(?![\p{L}\p{N}])(?=[^\p{L}\p{N}@\n]*[:=>;|{[]|["'\]\s]*:|\(|["'][ \t\r]*[,\n])/giu;
/** The senders: who answers such a mail writes to them. */
const SENDER = /(?<![\p{L}\p{N}])(?:from|sender|path)(?=[^\p{L}\p{N}@\n]*[:=>;|{[]|["'\]\s]*:)/giu;
/** Recipients as the end of a longer word: `mailTo`, `sendCc`. */
const CAMEL =
  /(?<=[a-z])(?:To|Cc|Bcc)(?:E?[Mm]ails?|Address(?:es)?)?(?=[^\p{L}\p{N}@\n]*[:=>;|{[]|["'\]\s]*:|\(|["'][ \t\r]*[,\n])/gu;
/** Recipients as the name of an element with attributes. */
const ELEMENT = /<(?:[\w.-]+:)?(?:to|cc|bcc|rcpt|recipients?)(?=\s[^<>]*>)/giu;

/** Blank lines and marks between a name and what it stands for, as in a list or a form. */
const BETWEEN = /[^\p{L}\p{N}@]*/uy;
/** An end of a line for some program. */
const LINE_END = /[\n\r\v\f\u0085\u2028\u2029]/;
const EMPTY_LINE = /\n\r?\n/;
/** A line that goes on: it is folded, an item, or stands behind a comma or an open bracket. */
const GOES_ON = /^[ \t]|^["'*<-]/;
const OPEN = /[,;[({]/;

/** A name with its value, at the beginning of a line. */
const FIELD = /^[^\p{L}\p{N}_$\n\r\u2028\u2029]*[\p{L}_$][^\s:=(]*[ \t\r]*(?:[=(]|:(?!\/\/))/mu;
/** A first line that begins something which programs read: front matter, a section, a block, a document. */
const OPENER = /^(?:\[[^\]\n]*\]|---|\+\+\+|```|[{()%]|<\?|<[^>\n]*\sxmlns)/;
/** A first line that names columns. */
const COLUMNS = /^[\w "'-]{1,40}(?:[,;\t|][\w "'-]{0,40}){1,50}$/;
const COLUMN =
  /(?<![\p{L}\p{N}])(?:to|cc|bcc|rcpt|recipients?)(?:[_ -](?:e?-?mails?|address(?:es)?))?["']?[ \t]*(?:[,;\t|]|$)/iu;
/** A column that has such a name and no other words, among others of any length. */
const WHOLE_COLUMN =
  /(?:^|[,;\t|])[ "']*(?:to|cc|bcc|rcpt|recipients?)(?:[_ -](?:e?-?mails?|address(?:es)?))?["' ]*(?:[,;\t|]|$)/iu;
/** What programs look for in the midst of a text: a calendar, the field of a form, the words of SMTP, a mailbox. */
const WITHIN = [
  /^[ \t]*BEGIN:V/im,
  /^[ \t]*content-disposition/im,
  /\brcpt[ \t]+to/i,
  /^From [^\n\r\u2028\u2029]+\r?\n[!-9;-~]+[ \t\r]*:/m,
];
const CALENDAR = /BEGIN:V/i;

/** A field by which a program knows whom to send a mail to, so that others of the same header may say it as well. */
const SENDS = /^(?:resent-|apparently-)?(?:to|cc|bcc)$/;
/** Fields of a header that say nothing of where the mail is to go. */
const HARMLESS =
  /^(?:(?:resent-)?(?:from|sender|date|message-id)|subject|in-reply-to|references|comments|keywords|mime-version|content-[a-z-]+|received|x-received|received-spf|(?:[a-z-]+-)?(?:dkim|domainkey|arc-message)-signature|(?:[a-z-]+-)?authentication-results|arc-seal|x-spam-[a-z-]+|list-[a-z-]+|thread-[a-z]+|x-mailer|user-agent)$/;

/** An escape in a name of JSON, YAML or TOML, or of a form. */
const ESCAPE =
  /\\(?:u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))|%([0-9a-fA-F]{2})/g;
/** A value of YAML that stands elsewhere in the text. */
const ALIAS = /^[\s"'[-]*\*([^\s,\]}]+)/;

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
 * surely a mail. A text that quotes a mail further down, such as an issue, has none. Of a mail every field counts of which it is
 * not known that it is harmless.
 */
export function recipientsIn(text: string, { senders = false } = {}): Recipients[] {
  if (!mayHaveAddress(text)) return [];
  const lines = text.trimStart();
  const fields = fieldsOf(lines);
  const { head, found } = headOf(lines, fields.length > 0);
  const names = senders ? [NAME, CAMEL, ELEMENT, SENDER] : [NAME, CAMEL, ELEMENT];
  const seen = unfolded(found ? head : lines);
  const plain = unescaped(seen);
  const named = [seen, ...(plain === seen ? [] : [plain])].flatMap((one) => namedIn(one, names));
  return [...peopleOf(fields), ...named];
}

/** What stands behind names in a text, or in one of its columns. */
function namedIn(seen: string, names: RegExp[]): Recipients[] {
  const [line = ""] = seen.split("\n", 1);
  const first = line.trim();
  const all = { value: seen, is_field: false };
  if ((COLUMNS.test(first) && COLUMN.test(line)) || WHOLE_COLUMN.test(first)) return [all];
  return valuesIn(seen, names).flatMap((one) => {
    if (asRead(one.value).includes("@")) return [one];
    const [, alias] = ALIAS.exec(one.value) ?? [];
    return alias !== undefined && seen.includes(`&${alias}`) ? [all] : [];
  });
}

/** The values of the fields of a mail by which it may go to somebody. */
function peopleOf(fields: readonly HeaderField[]): Recipients[] {
  if (!fields.some(({ name }) => SENDS.test(name))) return [];
  return fields
    .filter(({ name, value }) => !HARMLESS.test(name) && asRead(value).includes("@"))
    .map(({ value }) => ({ value, is_field: true }));
}

function unescaped(text: string): string {
  return text.replaceAll(ESCAPE, (whole, ...found: (string | undefined)[]) => {
    const code = Number.parseInt(found.slice(0, 5).find((hex) => hex !== undefined) ?? "", 16);
    return code >= 0x20 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

/** The part of a text in which a name gives a recipient; not found where that is all of it. */
function headOf(lines: string, is_mail: boolean): { head: string; found: boolean } {
  const end = EMPTY_LINE.exec(lines)?.index;
  const all = { head: lines, found: false };
  if (end === undefined || WITHIN.some((mark) => mark.test(lines))) return all;
  const head = lines.slice(0, end);
  const [first = ""] = head.split("\n", 1);
  if (is_mail) return { head, found: true };
  return FIELD.test(head) || OPENER.test(first) || COLUMNS.test(first.trim()) ? all : { head, found: true };
}

/** The fields of the header at the beginning of a text; none unless every program sees the same ones. */
function fieldsOf(text: string): readonly HeaderField[] {
  const { fields, problem, complete } = readHeaders(Buffer.from(text));
  return complete && problem === null ? fields : [];
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
  while (end < text.length && (GOES_ON.test(text.charAt(end + 1)) || isOpen(text, end)))
    end = lineEnd(text, end + 1);
  return end;
}

/** Whether something is open behind which the line ends. */
function isOpen(text: string, end: number): boolean {
  let at = end;
  while (at > 0 && /\s/.test(text.charAt(at - 1))) at -= 1;
  return OPEN.test(text.charAt(at - 1));
}

function lineEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) if (LINE_END.test(text.charAt(at))) return at;
  return text.length;
}
