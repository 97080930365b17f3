import { type Compilable, type RawBuilder, sql } from "kysely";
import type { Db } from "./group-commit.ts";
import { prepared } from "./prepared.ts";
import type { JobRow } from "./schema.ts";

/** The account as the index has it, with "" for none. */
const ACCOUNT = sql.raw("coalesce(account, '')");

/** A pending job, as far as it matters for taking it. */
export type DueRow = Pick<
  JobRow,
  "id" | "payload" | "attempts" | "failures" | "account" | "account_slots" | "weight" | "target"
>;

/** In the words of the index: jobs that wait neither for their lane nor, as far as is known, for their time. */
const READY = sql.raw("status = 'pending' and behind = 0 and later = 0");
const HEAVY = sql.raw("weight > 2500000");
const WAITS = sql.raw("status = 'pending' and later = 1");

/**
 * Lines (the values of `account`) of which something is ready, in their order from `from` on, `limit` of them at the most;
 * none of a kind that is held. As JSON. Each is looked for behind the one before, whatever lies between. `next_at` is
 * the unix second at which the next job of the kind is due that `ripen` has not seen; null for none.
 */
export const readyLines = prepared(
  (db, { kind, from, limit }: { kind: string; from: string; limit: number }) =>
    statement<{ lines: string; next_at: number | null }>(
      db,
      sql`with recursive found (line) as (
      select (select ${ACCOUNT} from jobs where kind = ${kind} and ${READY} and ${ACCOUNT} >= ${from} order by ${ACCOUNT} limit 1)
        where not exists (select 1 from held_kinds where held_kinds.kind = ${kind})
      union all
      select (select ${ACCOUNT} from jobs where kind = ${kind} and ${READY} and ${ACCOUNT} > found.line order by ${ACCOUNT} limit 1)
        from found where found.line is not null
      limit ${limit}
    )
    select json_group_array(line) filter (where line is not null) as lines,
      (select run_at from jobs where kind = ${kind} and ${WAITS} order by run_at limit 1) as next_at
    from found`,
    ),
);

/** Has claims see what has come due, `limit` jobs of a kind at the most; returns the line of each. */
export const ripen = prepared((db, { kind, now, limit }: { kind: string; now: number; limit: number }) =>
  statement<{ line: string }>(
    db,
    sql`update jobs set later = 0 where id in (
      select id from jobs where kind = ${kind} and ${WAITS} and run_at <= ${now} order by run_at limit ${limit}
    ) returning ${ACCOUNT} as line`,
  ),
);

/** The search for due jobs. */
export interface Due {
  kind: string;
  /** As JSON. */
  lines: string;
  now: number;
  /** Jobs of each line. */
  limit: number;
  /** The largest weight; heavier jobs are left out. */
  weight: number;
  /** As JSON; jobs for them are left out: targets, or lines with a target behind a line feed. */
  full_targets: string;
}

/**
 * The first due jobs of each line, those that have been due for longest before the others. However many wait for a target
 * or for memory, those behind them are found: each costs less than a microsecond, and a limit on how many are looked at
 * would hide the rest of the line.
 */
export const dueOfLines = prepared((db, { kind, lines, now, limit, weight, full_targets }: Due) =>
  statement<DueRow>(
    db,
    sql`select job.id, payload, attempts, failures, account, account_slots, weight, target
    from (select value from json_each(${lines})) as listed cross join jobs as job on job.id in (
      select due.id from jobs as due
      where due.kind = ${kind} and ${READY} and ${ACCOUNT} = listed.value and due.run_at <= ${now}
        and due.weight <= ${weight}
        and (due.target is null or (due.target not in (select value from json_each(${full_targets}))
          and listed.value || char(10) || due.target not in (select value from json_each(${full_targets}))))
      order by due.run_at, due.id limit ${limit}
    )
    order by job.run_at, job.id`,
  ),
);

/** Bytes beyond which a job is looked for that waits for memory; as in `HEAVY`. */
export const HEAVY_BYTES = 2_500_000;

/** The first due job of so many bytes of the first line behind `from` that has any; not for `full_targets`, which are JSON. SQLite would rather go through all that waits. */
export const heavyBehind = prepared(
  (
    db,
    { kind, from, now, full_targets }: { kind: string; from: string; now: number; full_targets: string },
  ) =>
    statement<DueRow>(
      db,
      sql`select id, payload, attempts, failures, account, account_slots, weight, target from jobs indexed by jobs_heavy
    where kind = ${kind} and ${READY} and ${HEAVY} and ${ACCOUNT} > ${from} and run_at <= ${now}
      and (target is null or (target not in (select value from json_each(${full_targets}))
        and ${ACCOUNT} || char(10) || target not in (select value from json_each(${full_targets}))))
    order by ${ACCOUNT}, run_at, id limit 1`,
    ),
);

/** A job, unless it has ended, was begun, or waits for something else by now. */
export const readyJob = prepared((db, { id }: { id: string }) =>
  statement<DueRow>(
    db,
    sql`select id, payload, attempts, failures, account, account_slots, weight, target from jobs
    where id = ${id} and ${READY}`,
  ),
);

/** One of those that wait or run in a lane, in the words of its index. */
export const jobInLane = prepared((db, { lane }: { lane: string }) =>
  statement<{ id: string }>(
    db,
    sql`select id from jobs where lane = ${lane} and status in ('pending', 'running') limit 1`,
  ),
);

function statement<Row>(db: Db, query: RawBuilder<unknown>): Compilable<Row> {
  return { compile: () => (query as RawBuilder<Row>).compile(db) };
}
