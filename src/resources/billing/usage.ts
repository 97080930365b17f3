import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { MessageRow, UserRow } from "../../db/schema.ts";
import { prepared } from "../../db/prepared.ts";
import { DONE } from "../../db/unfinished.ts";
import { invalid } from "../../errors.ts";
import { createTurns } from "../../lib/turns.ts";
import { monthCosts } from "./month-costs.ts";
import { storageOf } from "./storage.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;
/** Runs that are summed at once, while everybody else waits. */
const RUNS_AT_ONCE = 5_000;

/** An account has one range summed at a time: many at once would hold up everybody else. */
const turns = createTurns();

/** What finished runs came to. */
interface Sums {
  runs: number;
  credits: number;
  input_tokens: number;
  output_tokens: number;
}

/** Runs of one day, source and inbox. */
type Group = Sums & { day: number; source: MessageRow["source"] | "replay"; inbox_id: string | null };

/** What the runs of an account came to, in sums by day (UTC), source and inbox, both moments included; and what it stores now. */
export async function readUsage(app: App, user: UserRow, range: { since?: number; until?: number }) {
  const { db } = app;
  const { since, until } = checkedRange({ ...range, now: app.now() });
  const groups = await groupsOf(db, user, { since, until });
  const labels = await labelsOf(db, user);
  return {
    since,
    until,
    storage: await storageOf(app, db, user),
    costs: await monthCosts(app, user),
    totals: sumOf(groups),
    days: daysOf(groups, { since, until }),
    sources: busiest(
      groups,
      ({ source }) => source,
      (source) => ({ source }),
    ),
    inboxes: busiest(
      groups,
      ({ inbox_id }) => inbox_id,
      (inbox_id) => ({ inbox_id, label: labels.get(inbox_id) ?? null }),
    ),
  };
}

function checkedRange({ now, until = now, since }: { since?: number; until?: number; now: number }) {
  const first = since ?? Math.max(0, until - DEFAULT_DAYS * DAY_SECONDS);
  if (first > until)
    throw invalid(
      "query.since",
      "after_until",
      "`since` must not be later than `until`, which is now by default.",
    );
  if (until - first > MAX_DAYS * DAY_SECONDS)
    throw invalid("query.since", "range_too_long", `One answer covers at most ${MAX_DAYS} days.`);
  return { since: first, until };
}

/**
 * The runs of an account in groups, some of them more than once: an account may have any number of runs, so that they
 * are summed in portions. Between two of them others have as much time as one took.
 */
async function groupsOf(db: Db, user: UserRow, range: { since: number; until: number }): Promise<Group[]> {
  return turns(user.id, async () => {
    const groups: Group[] = [];
    for (let { since } = range; since <= range.until;) {
      const began = performance.now();
      const [next] = await firstBeyond(db, { user_id: user.id, since, until: range.until });
      // All runs of a second are in one portion, as a portion is a range of seconds.
      const until = next === undefined ? range.until : Math.max(since, next.created - 1);
      groups.push(...(await sumsOf(db, user, { since, until })));
      groups.push(...(await sumsOfReplays(db, user, { since, until })));
      since = until + 1;
      if (next !== undefined) await Bun.sleep(performance.now() - began);
    }
    return groups;
  });
}

/** The first run that is too many for a portion. */
const firstBeyond = prepared((db, runs: { user_id: string; since: number; until: number }) =>
  db
    .selectFrom("messages")
    .select("created")
    .where("user_id", "=", runs.user_id)
    .where(DONE)
    .where("created", ">=", runs.since)
    .where("created", "<=", runs.until)
    .orderBy("created")
    .limit(1)
    .offset(RUNS_AT_ONCE),
);

/** The sums of the runs of a range, read from an index alone. */
async function sumsOf(db: Db, user: UserRow, range: { since: number; until: number }): Promise<Group[]> {
  return db
    .selectFrom("messages")
    .select((eb) => [
      eb("created", "/", eb.lit(DAY_SECONDS)).as("day"),
      "source",
      "inbox_id",
      eb.fn.countAll<number>().as("runs"),
      eb.fn.sum<number>("credits_charged").as("credits"),
      eb.fn.coalesce(eb.fn.sum<number>("input_tokens"), eb.lit(0)).as("input_tokens"),
      eb.fn.coalesce(eb.fn.sum<number>("output_tokens"), eb.lit(0)).as("output_tokens"),
    ])
    .where("user_id", "=", user.id)
    .where(DONE)
    .where("created", ">=", range.since)
    .where("created", "<=", range.until)
    .groupBy(["day", "source", "inbox_id"])
    .execute();
}

async function sumsOfReplays(
  db: Db,
  user: UserRow,
  range: { since: number; until: number },
): Promise<Group[]> {
  return db
    .selectFrom("replays")
    .innerJoin("messages", "messages.id", "replays.message_id")
    .select((eb) => [
      eb("replays.created", "/", eb.lit(DAY_SECONDS)).as("day"),
      eb.val("replay" as const).as("source"),
      "messages.inbox_id",
      eb.fn.countAll<number>().as("runs"),
      eb.fn.sum<number>("replays.credits_charged").as("credits"),
      eb.fn.coalesce(eb.fn.sum<number>("replays.input_tokens"), eb.lit(0)).as("input_tokens"),
      eb.fn.coalesce(eb.fn.sum<number>("replays.output_tokens"), eb.lit(0)).as("output_tokens"),
    ])
    .where("replays.user_id", "=", user.id)
    .where("replays.state", "=", "done")
    .where("replays.created", ">=", range.since)
    .where("replays.created", "<=", range.until)
    .groupBy(["day", "messages.inbox_id"])
    .execute();
}

async function labelsOf(db: Db, user: UserRow): Promise<Map<string | null, string>> {
  const inboxes = db
    .selectFrom("inboxes")
    .select(["id", "label"])
    .where("user_id", "=", user.id)
    .where("deleted_at", "is", null);
  return new Map((await inboxes.execute()).map(({ id, label }) => [id, label]));
}

/** The sums of every day of the range, also of days on which nothing ran. */
function daysOf(groups: Group[], { since, until }: { since: number; until: number }) {
  const known = Map.groupBy(groups, ({ day }) => day);
  const first = Math.floor(since / DAY_SECONDS);
  const count = Math.floor(until / DAY_SECONDS) - first + 1;
  return Array.from({ length: count }, (_, index) => {
    const date = new Date((first + index) * DAY_SECONDS * 1_000);
    const day = date.toISOString().slice(0, "YYYY-MM-DD".length);
    return { day, ...sumOf(known.get(first + index) ?? []) };
  });
}

/**
 * The sums of the groups with the same key, those with the most runs first, each behind what `headOf` makes of the
 * key.
 */
function busiest<Key, Head extends object>(
  groups: Group[],
  keyOf: (group: Group) => Key,
  headOf: (key: Key) => Head,
): (Head & Sums)[] {
  const sums = [...Map.groupBy(groups, keyOf)].map(([key, some]) => Object.assign(headOf(key), sumOf(some)));
  return sums.sort((one, other) => other.runs - one.runs);
}

function sumOf(groups: Sums[]): Sums {
  const total = { runs: 0, credits: 0, input_tokens: 0, output_tokens: 0 };
  for (const { runs, credits, input_tokens, output_tokens } of groups) {
    total.runs += runs;
    total.credits += credits;
    total.input_tokens += input_tokens;
    total.output_tokens += output_tokens;
  }
  return total;
}
