import type { RefusalReason } from "../../../metrics.ts";
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
  skipped: "Not taken, by a rule",
};

export const MAIL_WORDS: Record<string, string> = {
  queued: "About to leave",
  sent: "Sent",
  deferred: "Tried again later",
  bounced: "Came back",
  suppressed: "Not sent",
};

const REFUSAL_WORDS: Record<RefusalReason, string> = {
  inbox_paused: "Its inbox was paused",
  sender_unauthenticated: "Nothing proved who sent it, and its inbox works on no such mail",
  auth_failed: "Nothing proved who sent it",
  bad_from: "No single sender in it",
  block_list: "The other server is on a block list",
  crowded: "Too many mails at once",
  dns_unanswered: "The DNS did not answer",
  gone: "The inbox was deleted meanwhile",
  loop: "Sent in a circle",
  malformed_header: "A header that can be read in two ways",
  not_allowlisted: "The sender is not on the inbox's list",
  rate_limited: "Too many from one place in a short time",
  repeated_field: "A header twice that may be there once",
  reports_only: "Written to an address for delivery reports",
  storage: "The disk of this server was full or broken",
  storage_full: "The account that it was for had no room left",
  too_large: "Too large",
  too_many_connections: "Too many connections from one place",
  too_slow: "Took too long to arrive",
  unknown_recipient: "No such address here",
  unreadable: "Took too long to read",
};

/** Why the server did not take a mail, by a reason of its figures. */
export function refusalWords(reason: string): string {
  return (REFUSAL_WORDS as Record<string, string>)[reason] ?? reason;
}
