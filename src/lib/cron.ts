import { Cron } from "croner";

/**
 * Minute, hour, day of the month, month and day of the week, as in a crontab. The `+` of the library, which joins the two kinds of days,
 * is none of its signs.
 */
const FIVE_FIELDS = /^[\w*,/#?-]+(?: [\w*,/#?-]+){4}$/;
/** A pattern comes within these, the 29th of February behind a century without one included, or never. */
const YEARS_TO_COME = 9;

/**
 * Returns whether `text` is a cron pattern of five fields, or a name for one such as `@daily`, that matches a future
 * time.
 */
export function isSchedule(text: string): boolean {
  return (isPattern(text) || text.startsWith("@")) && hasTime(text);
}

/** Whether `text` is a pattern of five fields that names a time. */
export function isPattern(text: string): boolean {
  return FIVE_FIELDS.test(text) && hasTime(text);
}

function hasTime(text: string): boolean {
  try {
    // Without an end the library looks through a thousand years, for as long as a second.
    const year = new Date().getUTCFullYear();
    const bounded = text.startsWith("@") ? text : `0 ${text} ${year}-${year + YEARS_TO_COME}`;
    return new Cron(bounded).nextRun() !== null;
  } catch {
    return false;
  }
}

/**
 * Returns the first time after `after` that a cron pattern matches, both in unix seconds. The server's patterns are
 * read in UTC, where no hour is missing or repeated; those of an account in its time zone, in which a time that a change
 * of the clock leaves out comes right after the gap, and one that it brings twice comes once.
 */
export function nextTime(pattern: string, after: number, timezone = "UTC"): number {
  // With an offset no table of time zones is read, which each start would wait for.
  const zone = timezone === "UTC" ? { utcOffset: 0 } : { timezone };
  const next = new Cron(pattern, zone).nextRun(new Date(after * 1_000));
  if (next === null) throw new Error(`"${pattern}" names no time to come`);
  return Math.floor(next.getTime() / 1_000);
}
