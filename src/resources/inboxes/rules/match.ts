import type { Authority } from "../../../db/schema.ts";
import type { MailHeaders } from "../../../mail/reading/headers.ts";
import { partsOf } from "../../../lib/written-moment.ts";
import { nextTime } from "../../../lib/cron.ts";
import { isListed } from "../allowlist.ts";
import { type Actions, type Condition, FILE_KINDS, type FileKind, type Rule } from "./rules.ts";
import { type Found, placeOf } from "./words.ts";

/** What the conditions of a rule are held against: one message, as its run reads it. */
export interface Facts {
  /** The proven sender; "" for a call, and where nothing proves who wrote a mail. */
  sender: string;
  /** Words of the recipient's `+tag`, as they are compared. */
  tags: string[];
  authority: Authority;
  /** Null for a call. */
  headers: Pick<MailHeaders, "all"> | null;
  /** The kinds of files that it has. */
  kinds: Set<FileKind>;
  /** Bytes of the mail, or of all that a call brought. */
  size: number;
  /** The words that stand in its subject, in all that can be read in it without the text of its files, and in its header. */
  found: Found;
  /** When it was accepted, in unix seconds. */
  accepted: number;
  /** The time zone of the account, as an IANA name. */
  timezone: string;
}

/** Whether everything that a rule names without a question is so. A rule that names nothing holds for every message. */
export function fits({ when, match }: Pick<Rule, "when" | "match">, facts: Facts): boolean {
  const holds = (condition: Condition) => isSo(condition, facts) !== condition.not;
  return when.length === 0 || (match === "any" ? when.some(holds) : when.every(holds));
}

function isSo(condition: Condition, facts: Facts): boolean {
  const { is } = condition;
  switch (condition.field) {
    case "sender":
      return facts.sender !== "" && isListed(facts.sender, is);
    case "tag":
      return facts.tags.some((tag) => is.includes(tag));
    case "authority":
      return is.includes(facts.authority);
    case "files":
      return is.some((kind) => facts.kinds.has(kind as FileKind));
    case "subject":
    case "text":
    case "header":
      return isIn(condition, facts);
    case "size":
      return isBetween(facts.size, condition);
    case "time":
      return isAt(facts.accepted, { ...condition, zone: condition.zone || facts.timezone });
  }
}

/** A field of the header only has to be there where no words are named. */
function isIn(condition: Condition, { found, headers }: Facts): boolean {
  const { name, contains } = condition;
  const place = placeOf(condition);
  if (place === null) return (headers?.all(name) ?? []).length > 0;
  const words = found[place] ?? [];
  return contains.some((word) => words.includes(word));
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

/** The kinds of files, of which there may be many, looked at once for all conditions. */
export function kindsOf(files: { filename: string; content_type: string }[]): Set<FileKind> {
  const isOf = (kind: FileKind) =>
    kind === "any"
      ? files.length > 0
      : files.some(
          ({ filename, content_type }) =>
            TYPES[kind].test(content_type.toLowerCase()) || ENDINGS[kind].test(filename),
        );
  return new Set(FILE_KINDS.filter(isOf));
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

const MINUTE_SECONDS = 60;

/** When the clock shows the time that a message waits for, in unix seconds: next, or in the minute in which it came. */
export function nextClock(
  { until, days = [], zone }: NonNullable<Actions["wait"]>,
  { accepted, timezone }: Pick<Facts, "accepted" | "timezone">,
): number {
  const [hour, minute] = until.split(":").map(Number);
  const on = days.length === 0 ? "*" : days.join(",").toUpperCase();
  return nextTime(`${minute} ${hour} * * ${on}`, accepted - MINUTE_SECONDS, zone ?? timezone);
}
