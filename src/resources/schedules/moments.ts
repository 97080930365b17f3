import {
  type Clock,
  clockIn,
  dayAndMonth,
  DAYS,
  MAX_CHARS,
  MORNING,
  weekDay,
  wordsOf,
} from "./time-words.ts";

/** The clock and the zone that words about times are read by. */
export interface Now {
  /** Unix seconds. */
  now: number;
  /** IANA name. */
  timezone: string;
}

const UNITS: ReadonlySet<string> = new Set(["minute", "hour", "day", "week", "month", "year"]);

const MAX_COUNT = 1_000;

/**
 * Returns the moment (unix seconds) that words such as "tomorrow 9:00", "in 3 days", "friday 17:00" or "2026-12-24T09:00" stand
 * for; undefined if they are not clear. `end`: a day without a time of day means its end, and not its morning.
 */
export function readMoment(text: string, { now, timezone }: Now, end = false): number | undefined {
  if (text.length > MAX_CHARS) return undefined;
  const typed = text.trim();
  const iso = isoMoment(typed, timezone, end);
  if (iso !== undefined) return iso;
  const here = Temporal.Instant.fromEpochMilliseconds(now * 1_000).toZonedDateTimeISO(timezone);
  const later = inWords(typed.toLowerCase(), here);
  if (later !== undefined) return secondsOf(later);
  const read = clockIn(wordsOf(typed));
  if (read === undefined) return undefined;
  const { clock, words } = read;
  const at = (day: Temporal.PlainDate): Temporal.ZonedDateTime => onDay(day, clock, timezone, end);
  const today = here.toPlainDate();
  if (words.length === 0 && clock !== undefined) {
    const first = at(today);
    return secondsOf(secondsOf(first) > now ? first : at(today.add({ days: 1 })));
  }
  const day = dayNamed(words, today, (date) => secondsOf(at(date)) > now);
  return day && secondsOf(at(day));
}

function isoMoment(text: string, timezone: string, end: boolean): number | undefined {
  const [, date, time, offset] =
    /^(\d{4}-\d{2}-\d{2})(?:[T ]+(\d{1,2}:\d{2}(?::\d{2})?))?(Z|[+-]\d{2}:?\d{2})?$/i.exec(text) ?? [];
  if (date === undefined || (offset !== undefined && time === undefined)) return undefined;
  try {
    const clock = time?.padStart(time.length + (time.indexOf(":") === 1 ? 1 : 0), "0");
    if (offset !== undefined)
      return Math.floor(Temporal.Instant.from(`${date}T${clock}${offset}`).epochMilliseconds / 1_000);
    if (clock === undefined) return secondsOf(onDay(Temporal.PlainDate.from(date), undefined, timezone, end));
    return secondsOf(Temporal.PlainDateTime.from(`${date}T${clock}`).toZonedDateTime(timezone));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Reads "in 3 days" and "in an hour". */
function inWords(text: string, here: Temporal.ZonedDateTime): Temporal.ZonedDateTime | undefined {
  const [, count = "", name = ""] = /^in (an?|\d{1,4}) ([a-z]+?)s?$/.exec(text) ?? [];
  const many = /^an?$/.test(count) ? 1 : Number(count);
  return UNITS.has(name) && many >= 1 && many <= MAX_COUNT ? here.add({ [`${name}s`]: many }) : undefined;
}

function onDay(
  day: Temporal.PlainDate,
  clock: Clock | undefined,
  timezone: string,
  end: boolean,
): Temporal.ZonedDateTime {
  const { hour, minute } = clock ?? MORNING;
  const time = end && clock === undefined ? { hour: 23, minute: 59, second: 59 } : { hour, minute };
  return day.toPlainDateTime(time).toZonedDateTime(timezone);
}

function dayNamed(
  words: string[],
  today: Temporal.PlainDate,
  isToCome: (day: Temporal.PlainDate) => boolean,
): Temporal.PlainDate | undefined {
  const [first = "", ...rest] = words;
  const text = words.join(" ");
  if (text === "today") return today;
  if (text === "tomorrow") return today.add({ days: 1 });
  if (text === "day after tomorrow") return today.add({ days: 2 });
  const day = weekDay((first === "next" ? rest : words).join(" "));
  if (day !== undefined) {
    const ahead = (day - (today.dayOfWeek % DAYS.length) + DAYS.length) % DAYS.length;
    const next = today.add({ days: ahead });
    return isToCome(next) && !(first === "next" && ahead === 0) ? next : next.add({ days: DAYS.length });
  }
  return dateNamed(words, today, isToCome);
}

/** Reads "24 december", "december 24" and "24 dec 2027". */
function dateNamed(
  words: string[],
  today: Temporal.PlainDate,
  isToCome: (day: Temporal.PlainDate) => boolean,
): Temporal.PlainDate | undefined {
  const year = Number(/^\d{4}$/.exec(words[2] ?? "")?.[0] ?? 0);
  const found = dayAndMonth(year === 0 ? words : words.slice(0, 2));
  if (found === undefined) return undefined;
  try {
    if (year !== 0) return Temporal.PlainDate.from({ ...found, year }, { overflow: "reject" });
    const soon = Temporal.PlainDate.from({ ...found, year: today.year }, { overflow: "reject" });
    return isToCome(soon) ? soon : soon.add({ years: 1 });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function secondsOf(moment: Temporal.ZonedDateTime): number {
  return Math.floor(moment.epochMilliseconds / 1_000);
}

/** Returns the name of a zone as the IANA database spells it, or a similar spelling of it; undefined if there is none. */
export function readZone(text: string): string | undefined {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text.trim() }).resolvedOptions().timeZone;
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}
