import { isPattern } from "../../lib/cron.ts";
import type { Now } from "./moments.ts";
import { clockIn, dayAndMonth, MAX_CHARS, weekDay, wordsOf } from "./time-words.ts";

/** Why words that say clearly when are no time of a schedule, and what could be typed instead. */
interface WhyNot {
  code: string;
  message: string;
  proposals?: string[];
}

const APART = "at least an hour lies between two runs";
const FIELDS =
  "minute (0 to 59), hour (0 to 23), day (1 to 31), month (1 to 12) and day of the week (0 to 7, from Sunday)";
const MINUTES_OF_HOUR = 60;
const HOURLY = ["hourly", "6 hours", "weekday 8:00"];

/** Returns why words are no repetition; undefined where it is not clear what they mean. */
export function whyNotEvery(typed: string): WhyNot | undefined {
  if (typed.length > MAX_CHARS) return undefined;
  const text = typed.trim().replaceAll(/\s+/g, " ");
  if (hasFiveFields(text)) return whyNotPattern(text);
  const words = wordsOf(text);
  const days = words.slice(/^year|^annual/.test(words[0] ?? "") ? 1 : 0);
  return noSuchAmount(text, words) ?? noSuchWeeks(text, words) ?? noSuchClock(words) ?? noSuchDay(days);
}

function noSuchAmount(text: string, words: string[]): WhyNot | undefined {
  const [count, unit] = amountOf(words);
  if (unit === "minute" && count >= MINUTES_OF_HOUR)
    return {
      code: "no_such_time",
      message: `“${text}” come at other times each day. Only 1, 2, 3, 4, 6, 8 or 12 hours do not.`,
      proposals: HOURLY,
    };
  if (unit === "minute" || unit === "second")
    return { code: "too_often", message: `“${text}” is too often: ${APART}.`, proposals: HOURLY };
  if (unit !== "hour" || count === 0) return undefined;
  return {
    code: "no_such_time",
    message: `Only 1, 2, 3, 4, 6, 8 or 12 hours come at the same times each day, and not “${text}”; 24 hours are “daily”.`,
    proposals: HOURLY,
  };
}

/** "2 weeks", "other week", "biweekly": a pattern counts no weeks. */
const SOME_WEEKS =
  /^(?:(?:[2-9]|[1-5]\d|two|three|four|other|second|third|alternate|2nd|3rd) weeks?|bi-?weekly|fortnight(?:ly|s)?)\b/;

function noSuchWeeks(text: string, words: string[]): WhyNot | undefined {
  if (!SOME_WEEKS.test(words.join(" "))) return undefined;
  return {
    code: "no_such_time",
    message: `“${text}” cannot be had: a schedule runs in every week, or on days of the month, such as the 1st and the 15th.`,
    proposals: ["monday 9:00", "0 9 1,15 * *", "monthly 1 9:00"],
  };
}

function hasFiveFields(text: string): boolean {
  const fields = text.split(" ");
  return fields.length === 5 && fields.every((field) => /[\d*?L]/.test(field)) && /^[\d*]/.test(text);
}

function whyNotPattern(text: string): WhyNot {
  if (isPattern(text))
    return {
      code: "too_often",
      message: `“${text}” names more than one minute of an hour, but ${APART}: give its minute as one number.`,
      proposals: HOURLY,
    };
  return { code: "no_such_time", message: `“${text}” never comes: its fields are ${FIELDS}.` };
}

/** Reads "30 minutes", "5min" and "minute". */
function amountOf(words: string[]): [count: number, unit: string | undefined] {
  const [, count = "0", name = ""] = /^(\d{1,4})? ?([a-z]+)$/.exec(words.join(" ")) ?? [];
  const unit = ["second", "minute", "hour"].find((one) => UNITS[one]?.includes(name));
  return [Number(count), unit];
}

const UNITS: Record<string, string[]> = {
  second: ["s", "sec", "secs", "second", "seconds", "secondly"],
  minute: ["m", "min", "mins", "minute", "minutes", "minutely"],
  hour: ["h", "hr", "hrs", "hour", "hours"],
};

/** Returns why words are no moment; undefined where it is not clear what they mean. */
export function whyNotMoment(typed: string, { now, timezone }: Now): WhyNot | undefined {
  if (typed.length > MAX_CHARS) return undefined;
  const words = wordsOf(typed.trim().replace(/(\d)T(\d)/, "$1 $2"));
  const [first = "", second = ""] = words;
  const is_past =
    words.includes("yesterday") ||
    words.at(-1) === "ago" ||
    (first === "last" && (/^(night|week|month|year)$/.test(second) || weekDay(second) !== undefined));
  if (is_past) return { code: "in_the_past", message: `“${typed.trim()}” is in the past.` };
  const year = Temporal.Instant.fromEpochMilliseconds(now * 1_000).toZonedDateTimeISO(timezone).year;
  return noSuchClock(words) ?? noSuchDay(words, year) ?? otherOrder(typed.trim());
}

/** "24.12.2026", "12/24/2026 9:00": a day whose parts stand in another order than ours. */
function otherOrder(typed: string): WhyNot | undefined {
  const found = /^(\d{1,2})([./])(\d{1,2})\2(\d{4})(?:[ T]+(\d{1,2}:\d{2}))?$/.exec(typed);
  if (found === null) return undefined;
  const [, one = "", mark, other = "", year = "", clock] = found;
  // Between dots the day comes first everywhere.
  const orders =
    mark === "."
      ? [[one, other]]
      : [
          [one, other],
          [other, one],
        ];
  const days = orders
    .map(([day, month]) => ({ year: Number(year), month: Number(month), day: Number(day), named: "" }))
    .filter(isInCalendar)
    .map(({ month, day }) => [year, ...[month, day].map((part) => String(part).padStart(2, "0"))].join("-"));
  return {
    code: "invalid_format",
    message: `“${typed}” is not read, as days and months change places there: write year, month and day.`,
    ...(days.length === 0
      ? {}
      : { proposals: [...new Set(days)].map((day) => (clock === undefined ? day : `${day} ${clock}`)) }),
  };
}

function noSuchClock(words: string[]): WhyNot | undefined {
  const wrong = words.find(
    (word) =>
      /^\d{1,2}(?::\d{2}(?::\d{2})?(?:am|pm)?|am|pm)$/.test(word) && clockIn([word])?.clock === undefined,
  );
  if (wrong === undefined) return undefined;
  const message = `There is no time of day “${wrong}”: a day has hours from 0:00 to 23:59, or from 12am to 11:59pm.`;
  return { code: "no_such_time", message };
}

interface Day {
  /** Undefined where any year counts. */
  year: number | undefined;
  month: number;
  day: number;
  named: string;
}

/** `year`: the one that is meant where the words name none. */
function noSuchDay(words: string[], year?: number): WhyNot | undefined {
  const rest = words.filter((word) => clockIn([word])?.clock === undefined);
  const found = isoDay(rest) ?? dayInWords(rest, year);
  if (found === undefined || isInCalendar(found)) return undefined;
  return { code: "no_such_time", message: `There is no day “${found.named}” in the calendar.` };
}

function isoDay([named = "", ...others]: string[]): Day | undefined {
  const found = /^(\d{4})-(\d{2})-(\d{2})$/.exec(named);
  if (found === null || others.length > 0) return undefined;
  const [, year = 0, month = 0, day = 0] = found.map(Number);
  return { year, month, day, named };
}

function dayInWords(words: string[], usual: number | undefined): Day | undefined {
  const [one, other, named, ...others] = words;
  const found = dayAndMonth(words.slice(0, 2));
  if (found === undefined || others.length > 0 || !/^(\d{4})?$/.test(named ?? "")) return undefined;
  const year = named === undefined ? usual : Number(named);
  return { ...found, year, named: [one, other, ...(year === undefined ? [] : [year])].join(" ") };
}

const LEAP_YEAR = 2028;

function isInCalendar({ year = LEAP_YEAR, month, day }: Day): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}
