import { Cron } from "croner";

/** Minute, hour, day of the month, month and day of the week, as in a crontab. */
const FIVE_FIELDS = /^\S+( \S+){4}$/;

/** Whether `text` is a pattern of five fields, or a name for one such as `@daily`, that has a time to come. */
export function isSchedule(text: string): boolean {
  return (isPattern(text) || text.startsWith("@")) && hasTime(text);
}

/** Whether `text` is a pattern of five fields that names a time. */
export function isPattern(text: string): boolean {
  return FIVE_FIELDS.test(text) && hasTime(text);
}

function hasTime(text: string): boolean {
  try {
    return new Cron(text).nextRun() !== null;
  } catch {
    return false;
  }
}

/**
 * The first time after `after` that a pattern names, both in unix seconds. Patterns of the server are read in UTC, so that no hour
 * is missing or twice; those of an account by its own clock, on which a time that a change of the clock leaves out comes as much
 * later, and one that it brings twice comes once.
 */
export function nextTime(pattern: string, after: number, timezone = "UTC"): number {
  const next = new Cron(pattern, { timezone }).nextRun(new Date(after * 1_000));
  if (next === null) throw new Error(`"${pattern}" names no time to come`);
  return Math.floor(next.getTime() / 1_000);
}
