import { closestName } from "../../lib/closest-name.ts";
import { isPattern } from "../../lib/cron.ts";
import { readEvery } from "./every.ts";
import { type Now, readMoment, readZone } from "./moments.ts";
import { momentWords } from "./shown-times.ts";
import { type Times, timesAfter } from "./times.ts";
import { whyNotEvery, whyNotMoment } from "./why-not.ts";

/** Words about times, as they were typed. */
export interface TimeWords {
  every: string | undefined;
  at: string | undefined;
  tz: string | undefined;
  until: string | undefined;
}

/** What was not clear about a time. */
export interface Unclear {
  member: keyof TimeWords;
  code: string;
  message: string;
  /** Values that are read, and may have been meant. */
  proposals: string[];
}

/** Ways to say a time that are always read. */
const PROPOSALS = {
  every: ["daily 8:00", "weekday 8:00", "monday 9:00", "monthly 1 9:00"],
  at: ["tomorrow 9:00", "in 3 days", "2027-01-31 17:00"],
  until: ["2027-01-31", "in 3 months", "friday"],
  tz: ["Europe/Berlin", "America/New_York", "UTC"],
} as const;

export const TOO_LATE = [
  "body.at",
  "in_the_past",
  "No time of this schedule is to come: it is over, or its end comes before its next time.",
] as const;

/**
 * Reads the times of a schedule. `known`: its times so far, which stay where nothing is said; a pattern takes the place of a single
 * time, and the other way round.
 */
export function timesFor(
  words: TimeWords,
  { now, timezone: usual, known }: { now: number; timezone: string; known?: Times | undefined },
): { times: Times } | { unclear: Unclear } {
  const { every, at, tz } = words;
  if (every !== undefined && at !== undefined)
    return unclear("at", "ambiguous", "A schedule has either `every` or `at`, and not both.", []);
  const timezone = tz === undefined ? usual : readZone(tz);
  if (timezone === undefined) return unclear("tz", "unknown_timezone", unknownZone(tz ?? ""), PROPOSALS.tz);
  const read = readEach(words, { now, timezone });
  if ("unclear" in read) return read;
  return checked(
    { ...(read.given ?? timesOf(known)), timezone, until: read.until ?? known?.until ?? null },
    now,
  );
}

function timesOf(known: Times | undefined): Pick<Times, "pattern" | "at"> {
  return { pattern: known?.pattern ?? null, at: known?.at ?? null };
}

/** Reads each text that is given; `given` is undefined where none says when something runs. */
function readEach(
  { every, at, until }: TimeWords,
  here: Now,
): { given: Pick<Times, "pattern" | "at"> | undefined; until: number | null } | { unclear: Unclear } {
  const pattern = every === undefined ? null : readEvery(every);
  if (pattern === undefined || (pattern !== null && !isPattern(pattern)))
    return unclearTime("every", every, here);
  const moment = at === undefined ? null : readMoment(at, here);
  if (moment === undefined) return unclearTime("at", at, here);
  const end = until === undefined ? null : readMoment(until, here, true);
  if (end === undefined) return unclearTime("until", until, here);
  return { given: pattern === null && moment === null ? undefined : { pattern, at: moment }, until: end };
}

function unclearTime(member: "every" | "at" | "until", typed = "", here: Now): { unclear: Unclear } {
  const why = member === "every" ? whyNotEvery(typed) : whyNotMoment(typed, here);
  if (why !== undefined) return unclear(member, why.code, why.message, why.proposals ?? PROPOSALS[member]);
  return unclear(member, "unclear_time", `It is not clear when “${typed}” is.`, PROPOSALS[member]);
}

function checked(times: Times, now: number): { times: Times } | { unclear: Unclear } {
  const { pattern, at, timezone } = times;
  if (pattern === null && at === null)
    return unclear("every", "missing", "Say when it is to run, with `every` or with `at`.", PROPOSALS.every);
  if (timesAfter(times, now, 1).length > 0) return { times };
  return at !== null && at <= now
    ? unclear("at", "in_the_past", `${momentWords(at, timezone)} is in the past.`, PROPOSALS.at)
    : unclear("until", "in_the_past", "It would end before it runs for the first time.", PROPOSALS.until);
}

function unclear(
  member: Unclear["member"],
  code: string,
  message: string,
  proposals: readonly string[],
): { unclear: Unclear } {
  return { unclear: { member, code, message, proposals: [...proposals] } };
}

function unknownZone(typed: string): string {
  const near = closestName(typed, Intl.supportedValuesOf("timeZone"));
  const meant = near === undefined ? "" : ` Did you mean ${near}?`;
  return `There is no time zone “${typed}”: zones are named as in Europe/Berlin.${meant}`;
}
