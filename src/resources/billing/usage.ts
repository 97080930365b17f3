import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { MessageRow, UserRow } from "../../db/schema.ts";
import { DONE } from "../../db/unfinished.ts";
import { invalid } from "../../errors.ts";
import { storageOf } from "./storage.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

const DEFAULT_DAYS = 30;
const MAX_DAYS = 366;

/** What finished runs came to. */
interface Sums {
  runs: number;
  credits: number;
  input_tokens: number;
  output_tokens: number;
}

/** Runs of one day, source and inbox. */
type Group = Sums & { day: number; source: MessageRow["source"]; inbox_id: string | null };

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

/** The runs of an account in groups, read from an index alone. */
async function groupsOf(db: Db, user: UserRow, range: { since: number; until: number }): Promise<Group[]> {
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
