import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { UserRow } from "../../db/schema.ts";
import { NOT_DONE } from "../../db/unfinished.ts";
import type { JobPayloads } from "../../jobs/kinds.ts";
import { knownZone } from "../../lib/written-moment.ts";
import { prepareLetter, type QueueLetter } from "../../mail/writing/letters.ts";
import { isLeft } from "../../db/tries.ts";
import { NO_ROOM } from "./change-plan.ts";
import { creditsOf, keptForHousehold } from "./ledger.ts";
import {
  allowedBy,
  capitalized,
  countWords,
  moreOf,
  planLimits,
  type PlanLimits,
  sellsPlans,
} from "./plans.ts";

type Notice = JobPayloads["mail_notice"];
/** What a letter is to tell: `notices` are all that wait for it, and `since` is the unix second of the first. */
export type Told = Notice & { notices: Notice[]; since: number };
/** The mails and runs that a letter counts. `whose`: those of strangers alone; all where it is not said. */
type Limited = Pick<Told, "since"> & {
  reason: "credit_limit" | "plan_limit" | "budget_used_up";
  whose?: "strangers";
};

/** What was left undone for a limit. */
interface Undone {
  mails: number;
  /** How many runs of schedules. */
  runs: number;
}

/** The letter about a lack of credits; undefined where nothing is left undone for it. */
export async function creditLetter(
  app: App,
  user: UserRow,
  { since }: Told,
): Promise<QueueLetter | undefined> {
  const reason = "credit_limit";
  const credits = await creditsOf(app, app.db, user);
  if (credits.remaining > 0)
    return lateLetter(app, user, {
      since,
      reason,
      cause: "there were no credits",
      now: "There are credits again",
    });
  const undone = await countUndone(app.db, user, { since: credits.period_start, reason });
  if (sumOf(undone) === 0) return undefined;
  return letterTo(app, user, {
    subject: "Your Mailwright credits are used up",
    words: [
      `${undone.mails === 0 ? "Your schedules are" : "Mail to your inboxes is"} not being worked on: your credits for this period are used up (**${credits.used} of ${credits.allowance}**).`,
      `${undoneWords(undone, "senders whom you have listed were told, others were not")} ${againWords(app, undone, " once there are credits")}`,
      `New credits are there on **${momentFor(user, credits.resets_at)}**. ${adviceFor(app, user, "credits")}`,
    ],
  });
}

/** The letter about the share of the credits that strangers may use; undefined as that about all credits is. */
export async function strangersLetter(
  app: App,
  user: UserRow,
  { since }: Told,
): Promise<QueueLetter | undefined> {
  const of = { reason: "credit_limit", whose: "strangers" } as const;
  const credits = await creditsOf(app, app.db, user);
  const kept = keptForHousehold(credits.allowance);
  if (credits.remaining > kept)
    return lateLetter(app, user, {
      ...of,
      since,
      cause: "senders whom you have not listed had used up their share of your credits",
      now: "There are credits for them again",
    });
  const undone = await countUndone(app.db, user, { ...of, since: credits.period_start });
  if (sumOf(undone) === 0) return undefined;
  return letterTo(app, user, {
    subject: "Mail of strangers has used its share of your Mailwright credits",
    words: [
      `Mail of senders whom you have not listed is not being worked on: of your ${credits.allowance} credits for this period, the last ${kept} are kept for your own mail and calls, and for senders whom you have listed. **${credits.remaining}** are left.`,
      undoneWords(undone, "senders of such mail are not told"),
      `New credits are there on **${momentFor(user, credits.resets_at)}**. List the senders whose mail is to be worked on, on the page of an [inbox](${app.base_url}/app/inboxes) under “Who may write”: then nobody else can use your credits. ${adviceFor(app, user, "credits")}`,
    ],
  });
}

/**
 * The letter about what was left undone for a lack that has ended since, as where the server stood still in between; undefined where
 * there is nothing of it. It will not be worked on by itself, so that nobody else would tell of it.
 */
export async function lateLetter(
  app: App,
  user: UserRow,
  { cause, now, ...limited }: Limited & { cause: string; now: string },
): Promise<QueueLetter | undefined> {
  const undone = await countUndone(app.db, user, limited);
  if (sumOf(undone) === 0) return undefined;
  const { mails, runs } = undone;
  const one = sumOf(undone) === 1;
  const then = runs > 0 ? "at the time" : `when ${one ? "it" : "they"} came`;
  return letterTo(app, user, {
    subject: mails === 0 ? "Runs of your schedules were left out" : "Mail was taken, but not worked on",
    words: [
      `${namesOf(undone)} ${one ? "was" : "were"} not worked on ${then}, because ${cause}. Nothing was charged for ${one ? "it" : "them"}.`,
      `${now}. ${againWords(app, undone)}`,
    ],
  });
}

/** The letter about inboxes and webhook endpoints beyond the plan; undefined once there is room for all and nothing was left undone. */
export async function roomLetter(app: App, user: UserRow, { since }: Told): Promise<QueueLetter | undefined> {
  const limits = planLimits(app.config, user.plan);
  const inboxes = await countInboxes(app.db, user.id);
  const endpoints = await countEndpointsOff(app.db, user.id);
  const resting = inboxes - limits.inboxes;
  if (resting <= 0 && endpoints === 0)
    return lateLetter(app, user, {
      since,
      reason: "plan_limit",
      cause: "the inbox was more than your account may have",
      now: "All of your inboxes work again",
    });
  const allowed = allowedBy(app.config, user.plan);
  const of_inboxes = [
    `An inbox is not being worked on: ${allowed} **${countWords(limits.inboxes, "inboxes")}**, and you have ${inboxes}. The newest ${resting === 1 ? "one rests" : `${resting} rest`}, with everything in them.`,
    "Mail to them is kept and listed under “Limit reached” in your activity. Nothing is charged for it; senders whom you have listed are told, others are not. The times of their schedules are left out.",
    "Remove inboxes that you do not need, and the next ones work again.",
  ];
  const of_endpoints = `${capitalized(allowed)} **${countWords(limits.webhooks, "webhooks")}**, so ${endpoints === 1 ? "the newest one is" : `the newest ${endpoints} are`} switched off and told of nothing that happens. What waited for them can be sent again from their page once they are switched on again.`;
  return letterTo(app, user, {
    subject: `${resting > 0 ? "An inbox" : "A webhook endpoint"} is more than your Mailwright account may have`,
    words: [
      ...(resting > 0 ? of_inboxes : []),
      ...(endpoints > 0 ? [of_endpoints] : []),
      adviceFor(app, user, resting > 0 ? "inboxes" : "webhooks"),
    ],
  });
}

async function countInboxes(db: Db, user_id: string): Promise<number> {
  const rows = db.selectFrom("inboxes").select("id").where("user_id", "=", user_id);
  return (await rows.where("deleted_at", "is", null).execute()).length;
}

/** How many webhook endpoints are off because of the plan. */
async function countEndpointsOff(db: Db, user_id: string): Promise<number> {
  const rows = db.selectFrom("webhook_endpoints").select("id").where("user_id", "=", user_id);
  return (await rows.where("disabled_reason", "=", NO_ROOM).execute()).length;
}

/** Prepares a letter to an account's owner that goes once a day at most, or as seldom as it says, and says so. */
export function letterTo(
  app: App,
  user: UserRow,
  { subject, words, most = "once a day" }: { subject: string; words: string[]; most?: string },
): Promise<QueueLetter> {
  const markdown = [...words, `You get this mail ${most} at most.`].join("\n\n");
  return prepareLetter(app, { user_id: user.id, to: user.email, subject, markdown });
}

/** How the owner comes to more of what `setting` of their plan bounds. */
function adviceFor({ config, base_url }: App, { plan }: UserRow, setting: keyof PlanLimits): string {
  const more = sellsPlans(config)
    ? `[get a larger plan${setting === "credits" && plan !== "free" ? ", or buy credits" : ""}](${base_url}/app/billing)`
    : moreOf(config, plan, setting);
  return `If that is not enough, ${more}.`;
}

async function countUndone(db: Db, user: UserRow, { since, reason, whose }: Limited): Promise<Undone> {
  const limited = db
    .selectFrom("messages")
    .select((eb) => [
      eb.fn.countAll<number>().filterWhere("schedule_id", "is", null).as("mails"),
      eb.fn.countAll<number>().filterWhere("schedule_id", "is not", null).as("runs"),
    ])
    .where("user_id", "=", user.id)
    .where(NOT_DONE)
    .where("state", "=", "limited")
    .where("reason", "=", reason)
    .where((eb) => eb.or([eb("source", "=", "email"), eb("schedule_id", "is not", null)]))
    .where(isLeft)
    .where("created", ">=", since);
  const counted =
    whose === "strangers" ? limited.where("authority", "in", ["stranger", "unauthenticated"]) : limited;
  return counted.executeTakeFirstOrThrow();
}

function sumOf({ mails, runs }: Undone): number {
  return mails + runs;
}

/** "3 mails to your inboxes and one run of your schedules". */
function namesOf({ mails, runs }: Undone): string {
  const names = [
    ...(mails === 0 ? [] : [`${many(mails, "mail")} to your inboxes`]),
    ...(runs === 0 ? [] : [runsOf(runs)]),
  ];
  return capitalized(names.join(" and "));
}

function runsOf(runs: number): string {
  return `${many(runs, "run")} of your schedules`;
}

function many(count: number, name: string): string {
  return count === 1 ? `one ${name}` : `${count} ${name}s`;
}

/** What the letter about a limit that lasts says of what was left undone. `told`: which senders know of their mails. */
function undoneWords(undone: Undone, told: string): string {
  const { mails, runs } = undone;
  const left_out = [
    ...(mails === 0 ? [] : [`${many(mails, "mail")} came in since then`]),
    ...(runs === 0 ? [] : [`${runsOf(runs)} ${runs === 1 ? "was" : "were"} left out`]),
  ].join(", and ");
  const one = sumOf(undone) === 1;
  return `${capitalized(left_out)}. ${one ? "It is" : "They are"} kept and listed under “Limit reached” in your activity. Nothing was charged for ${one ? "it" : "them"}${mails === 0 ? "" : `; ${told}`}.`;
}

/** How what was left undone is done after all. */
function againWords({ base_url }: App, { mails, runs }: Undone, when = ""): string {
  const ways = [
    ...(mails === 0 ? [] : [`have mail that still matters tried again in your [activity](${base_url}/app/)`]),
    ...(runs === 0 ? [] : [`make up for runs by “Run now” of their [schedules](${base_url}/app/schedules)`]),
  ];
  return `Nothing of that is worked on later by itself: ${ways.join(", and ")}${when}.`;
}

/** "1 February 2026 at 01:00", on the owner's clock. */
function momentFor(user: UserRow, second: number): string {
  const timezone = knownZone(user.timezone);
  const moment = new Date(second * 1_000);
  const day = moment.toLocaleDateString("en-GB", { dateStyle: "long", timeZone: timezone });
  const time = moment.toLocaleTimeString("en-GB", { timeStyle: "short", timeZone: timezone });
  return `${day} at ${time} (${timezone})`;
}
