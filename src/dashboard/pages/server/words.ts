import { REFUSALS } from "../../../reasons.ts";
import { STATUSES } from "../activity/words.ts";
import { DAY_SECONDS, HOUR_SECONDS, MINUTE_SECONDS } from "../../../lib/durations.ts";

const number = new Intl.NumberFormat();

/** A length of time as people say it, in one unit. */
export function spanOf(seconds: number): string {
  if (seconds < 0.05) return "under 0.1 s";
  if (seconds < 10) return `${number.format(Math.round(seconds * 10) / 10)} s`;
  if (seconds < 2 * MINUTE_SECONDS) return `${Math.round(seconds)} s`;
  if (seconds < 2 * HOUR_SECONDS) return `${Math.floor(seconds / MINUTE_SECONDS)} min`;
  return seconds < 2 * DAY_SECONDS
    ? `${Math.floor(seconds / HOUR_SECONDS)} h`
    : `${Math.floor(seconds / DAY_SECONDS)} days`;
}

/** Such as "1 job", "2 jobs" and "1,000 jobs". */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${number.format(count)} ${count === 1 ? one : many}`;
}

export const MESSAGE_WORDS: Record<string, string> = {
  ...Object.fromEntries(Object.entries(STATUSES).map(([status, { word }]) => [status, word])),
  skipped: "Left out",
};

export const MAIL_WORDS: Record<string, string> = {
  queued: "About to leave",
  sent: "Sent",
  deferred: "Tried again later",
  bounced: "Came back",
  suppressed: "Not sent",
};

/** Why the server did not take a mail, by a reason of its figures. */
export function refusalWords(reason: string): string {
  return (REFUSALS as Record<string, { shown: string }>)[reason]?.shown ?? reason;
}
