import type { Authority } from "../../../db/schema.ts";
import { decodeWords, type MailHeaders } from "../../../mail/reading/headers.ts";
import { partsOf } from "../../../lib/written-moment.ts";
import { nextTime } from "../../../lib/schedule.ts";
import { isListed } from "../allowlist.ts";
import type { Actions, Condition, FileKind, Rule } from "./rules.ts";

/** What the conditions of a rule are held against: one message, as its run reads it. */
export interface Facts {
  /** The proven sender; "" for a call, and where nothing proves who wrote a mail. */
  sender: string;
  subject: string;
  /** Words of the recipient's `+tag`. */
  tags: string[];
  authority: Authority;
  /** Null for a call. */
  headers: Pick<MailHeaders, "all"> | null;
  files: { filename: string; content_type: string }[];
  /** Bytes of the mail, or of all that a call brought. */
  size: number;
  /** All that can be read in it, of its author and of others, without the text of its files. */
  text: string;
  /** When it was accepted, in unix seconds. */
  accepted: number;
  /** The time zone of the account, as an IANA name. */
  timezone: string;
}

/** How far into a text its words are looked for. */
const MAX_TEXT_CHARS = 50_000;

/** Whether everything that a rule names without a question is so. A rule that names nothing holds for every message. */
export function fits({ when, match }: Pick<Rule, "when" | "match">, facts: Facts): boolean {
  const holds = (condition: Condition) => isSo(condition, facts) !== condition.not;
  return when.length === 0 || (match === "any" ? when.some(holds) : when.every(holds));
}

function isSo(condition: Condition, facts: Facts): boolean {
  const { is, contains } = condition;
  switch (condition.field) {
    case "sender":
      return facts.sender !== "" && isListed(facts.sender, is);
    case "tag":
      return facts.tags.some((tag) => is.includes(comparable(tag)));
    case "authority":
      return is.includes(facts.authority);
    case "files":
      return facts.files.some((file) => is.some((kind) => isOfKind(file, kind as FileKind)));
    case "subject":
      return holdsOne(facts.subject, contains);
    case "text":
      return holdsOne(facts.text.slice(0, MAX_TEXT_CHARS), contains);
    case "header":
      return hasHeader(condition, facts);
    case "size":
      return isBetween(facts.size, condition);
    case "time":
      return isAt(facts.accepted, { ...condition, zone: condition.zone || facts.timezone });
  }
}

/** Text as it is compared: letters of any case and width, and all white space as one blank. */
export function comparable(text: string): string {
  return text.normalize("NFKC").toLowerCase().split(/\s+/).join(" ").trim();
}

function holdsOne(text: string, words: string[]): boolean {
  const read = comparable(text);
  return words.some((word) => read.includes(word));
}

function hasHeader({ name, contains }: Condition, { headers }: Facts): boolean {
  const values = headers?.all(name) ?? [];
  if (contains.length === 0) return values.length > 0;
  return values.some((value) => holdsOne(decodeWords(value), contains));
}

function isBetween(size: number, { over_bytes, under_bytes }: Condition): boolean {
  return (over_bytes === null || size > over_bytes) && (under_bytes === null || size < under_bytes);
}

/** Endings of names by the kind of file, for mail programs that send everything as `application/octet-stream`. */
const ENDINGS: Record<Exclude<FileKind, "any">, RegExp> = {
  pdf: /\.pdf$/i,
  picture: /\.(png|jpe?g|gif|webp|heic|heif|bmp|tiff?|svg)$/i,
  document: /\.(docx?|odt|rtf|txt|md|pptx?|odp)$/i,
  table: /\.(xlsx?|ods|csv|tsv)$/i,
  calendar: /\.ics$/i,
  archive: /\.(zip|7z|rar|tar|gz|tgz|bz2|xz)$/i,
  mail: /\.(eml|msg)$/i,
};
const TYPES: Record<Exclude<FileKind, "any">, RegExp> = {
  pdf: /^application\/pdf$/,
  picture: /^image\//,
  document:
    /^(application\/(msword|rtf|vnd\.oasis\.opendocument\.(text|presentation)|vnd\.openxmlformats-officedocument\.(wordprocessingml|presentationml)\..*|vnd\.ms-powerpoint)|text\/(plain|markdown))$/,
  table:
    /^(application\/(vnd\.ms-excel|vnd\.oasis\.opendocument\.spreadsheet|vnd\.openxmlformats-officedocument\.spreadsheetml\..*)|text\/(csv|tab-separated-values))$/,
  calendar: /^(text\/calendar|application\/ics)$/,
  archive: /^application\/(zip|gzip|x-(7z-compressed|rar-compressed|tar|bzip2|xz))$/,
  mail: /^(message\/(rfc822|global)|application\/vnd\.ms-outlook)$/,
};

function isOfKind({ filename, content_type }: Facts["files"][number], kind: FileKind): boolean {
  if (kind === "any") return true;
  return TYPES[kind].test(content_type.toLowerCase()) || ENDINGS[kind].test(filename);
}

const WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] as const;

/** A moment as the clock of a place shows it: the day of the week, and "HH:MM". */
export function clockAt(second: number, zone: string): { day: string; time: string } {
  const { weekday = "", hour, minute } = partsOf(second, zone);
  return { day: weekday.slice(0, 3).toLowerCase(), time: `${hour}:${minute}` };
}

/** Whether it is one of the days, and between two times; from 22:00 to 06:00 belongs to the day on which it begins. */
function isAt(
  second: number,
  { days, from, to, zone }: Pick<Condition, "days" | "from" | "to" | "zone">,
): boolean {
  const { day, time } = clockAt(second, zone);
  const before = WEEKDAYS[(WEEKDAYS.indexOf(day as (typeof WEEKDAYS)[number]) + 6) % 7] ?? day;
  const isDay = (name: string) => days.length === 0 || days.includes(name);
  const begins = from || "00:00";
  const ends = to || "24:00";
  if (begins <= ends) return isDay(day) && time >= begins && time < ends;
  return (isDay(day) && time >= begins) || (isDay(before) && time < ends);
}

/** When the clock shows the time next that a message waits for, in unix seconds. */
export function nextClock(
  { until, days = [], zone }: NonNullable<Actions["wait"]>,
  { accepted, timezone }: Pick<Facts, "accepted" | "timezone">,
): number {
  const [hour, minute] = until.split(":").map(Number);
  const on = days.length === 0 ? "*" : days.join(",").toUpperCase();
  return nextTime(`${minute} ${hour} * * ${on}`, accepted, zone ?? timezone);
}
