import { isPattern } from "../../lib/cron.ts";
import {
  type Clock,
  clockIn,
  dayAndMonth,
  dayNumber,
  DAYS,
  HOURS_OF_DAY,
  MAX_CHARS,
  MORNING,
  weekDay,
  wordsOf,
} from "./time-words.ts";

/** Returns the pattern of five fields that words such as "weekday 8:00" or "monthly 15" stand for; undefined if they are not clear. */
export function readEvery(text: string): string | undefined {
  if (text.length > MAX_CHARS) return undefined;
  const typed = text.trim().replaceAll(/\s+/g, " ");
  if (isPattern(typed)) return /^\d+ /.test(typed) ? typed : undefined;
  const read = clockIn(wordsOf(typed.replace(/^@/, "")));
  if (read === undefined) return undefined;
  const { clock, words } = withHour(read);
  if (clock === undefined && words.length === 0) return undefined;
  const days = everyDays(words);
  if (days !== undefined) return withClock(clock ?? MORNING, days);
  return clock === undefined ? everyHours(words) : undefined;
}

/** A number alone behind days, as in "daily 8" or "every monday at 17", is an hour. Behind months it is a day. */
function withHour({ clock, words }: { clock: Clock | undefined; words: string[] }) {
  const hour = /^\d{1,2}$/.test(words.at(-1) ?? "") ? Number(words.at(-1)) : HOURS_OF_DAY;
  const days = words.slice(0, -1);
  if (clock !== undefined || hour >= HOURS_OF_DAY || !areDays(days)) return { clock, words };
  return { clock: { hour, minute: 0 }, words: days };
}

function areDays(words: string[]): boolean {
  const [first = "", ...rest] = words;
  return (rest.length === 0 && EACH_DAY.test(first)) || weekDays(words) !== undefined;
}

const EACH_DAY = /^(days?|daily|weekdays?|workdays?|weekends?)$/;

/** The words for days that stand alone, by what a pattern has for them. */
const ALONE: [RegExp, string][] = [
  [/^(day|daily)$/, "* * *"],
  [/^(weekday|workday)$/, "* * 1-5"],
  [/^weekend$/, "* * 6,0"],
  [/^(week|weekly)$/, "* * 1"],
  [/^(month|monthly)$/, "1 * *"],
  [/^(quarter|quarterly)$/, "1 1,4,7,10 *"],
  [/^(year|yearly|annually)$/, "1 1 *"],
];

/** The day of the month, the month and the day of the week of a pattern. */
function everyDays(words: string[]): string | undefined {
  const [first = "day", ...rest] = words;
  const name = first.replace(/s$/, "");
  const alone = rest.length === 0 ? ALONE.find(([form]) => form.test(name)) : undefined;
  if (alone) return alone[1];
  if (words.join(" ") === "last day month") return "L * *";
  if (/^(month|monthly)$/.test(name)) return monthDay(rest);
  if (/^(year|yearly|annually)$/.test(name)) return yearDay(rest);
  return weekDays(/^(week|weekly)$/.test(name) ? rest : words);
}

function monthDay(words: string[]): string | undefined {
  const [word = ""] = words;
  if (words.length !== 1) return undefined;
  if (word === "last") return "L * *";
  const day = dayNumber(word);
  // Not every month has a 31st; the day that each has at its end is meant.
  return day === undefined ? undefined : `${day === 31 ? "L" : day} * *`;
}

function yearDay(words: string[]): string | undefined {
  const found = dayAndMonth(words);
  return found && `${found.day} ${found.month} *`;
}

/** Reads "monday", "mon,thu", "mon-fri" and "tuesdays and fridays". */
function weekDays(words: string[]): string | undefined {
  if (words.length === 0) return undefined;
  const found: number[] = [];
  for (const word of words.flatMap((word) => word.split(/[,/&+]/))) {
    if (word === "" || word === "and") continue;
    const [from, to] = word.split("-").map(weekDay);
    if (from === undefined || word.split("-").length > 2 || (word.includes("-") && to === undefined))
      return undefined;
    const length = to === undefined ? 0 : (to - from + DAYS.length) % DAYS.length;
    for (let n = 0; n <= length; n += 1) found.push((from + n) % DAYS.length);
  }
  return found.length === 0
    ? undefined
    : `* * ${[...new Set(found)].toSorted((one, other) => one - other).join(",")}`;
}

function everyHours(words: string[]): string | undefined {
  const [first = "", second = ""] = words;
  if (words.length === 1 && /^(hour|hourly)$/.test(first)) return "0 * * * *";
  const hours = Number(/^\d{1,2}$/.exec(first)?.[0] ?? 0);
  if (words.length !== 2 || !/^hours?$/.test(second) || hours < 1) return undefined;
  // Only what a day is a multiple of has the same times each day.
  return HOURS_OF_DAY % hours === 0 && hours < HOURS_OF_DAY ? `0 */${hours} * * *` : undefined;
}

function withClock({ hour, minute }: Clock, days: string): string {
  return `${minute} ${hour} ${days}`;
}
