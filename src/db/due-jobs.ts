import { type Compilable, type RawBuilder, sql } from "kysely";
import type { Db } from "./group-commit.ts";
import { prepared } from "./prepared.ts";
import type { JobRow } from "./schema.ts";
import { UNENDED } from "./unfinished.ts";

/** The account as the index stores it, "" for none. */
const ACCOUNT = sql.raw("coalesce(account, '')");

/** The columns of a pending job that a claim needs. */
export type DueRow = Pick<
  JobRow,
  "id" | "payload" | "attempts" | "failures" | "account" | "account_slots" | "weight" | "target"
>;

/**
 * Jobs that wait neither for their lane nor, as far as is known, for their time. SQLite uses the partial index only for
 * this exact condition.
 */
const READY = sql.raw("status = 'pending' and behind = 0 and later = 0");
const HEAVY = sql.raw("weight > 2500000");
const WAITS = sql.raw("status = 'pending' and later = 1");

/**
 * Returns up to `limit` lines (accounts) with a ready job as sorted JSON, from `from` on; none while the kind is on hold
 * (`held_kinds`). Each line is found by an index seek behind the one before, however many jobs lie between.
 * `next_at` is the unix second at which the next job of the kind that `ripen` has not seen is due; null for none.
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

/** Marks at most `limit` jobs of a kind whose time has come, so that claims find them. Returns the line of each. */
export const ripen = prepared((db, { kind, now, limit }: { kind: string; now: number; limit: number }) =>
  statement<{ line: string }>(
    db,
    sql`update jobs set later = 0 where id in (
      select id from jobs where kind = ${kind} and ${WAITS} and run_at <= ${now} order by run_at limit ${limit}
    ) returning ${ACCOUNT} as line`,
  ),
);

/** The values of a search for due jobs. */
export interface Due {
  kind: string;
  /** The lines to search, as a JSON list. */
  lines: string;
  now: number;
  /** The largest number of jobs from each line. */
  limit: number;
  /** The largest weight; heavier jobs are left out. */
  weight: number;
  /**
   * Targets that take no more jobs now, as a JSON list: a target alone, or a line and a target joined by a line feed.
   */
  full_targets: string;
}

/**
 * Returns the first due jobs of each line, those due for longest first. Jobs that wait for a full target or for memory
 * are skipped one by one, at less than a microsecond each: a limit on that would hide the jobs behind them.
 */
export const dueOfLines = prepared((db, { kind, lines, now, limit, weight, full_targets }: Due) =>
  statement<DueRow>(
    db,
    sql`select job.id, payload, attempts, failures, account, account_slots, weight, target
    from (select value from json_each(${lines})) as listed cross join jobs as job on job.id in (
      select due.id from jobs as due
      where due.kind = ${kind} and ${READY} and ${ACCOUNT} = listed.value and due.run_at <= ${now}
        and due.weight <= ${weight}
        and ${isFree(sql.raw("listed.value"), sql.raw("due.target"), full_targets)}
      order by due.run_at, due.id limit ${limit}
    )
    order by job.run_at, job.id`,
  ),
);

/** Weight in bytes above which a job waiting for memory is searched for by itself; the same number as in `HEAVY`. */
export const HEAVY_BYTES = 2_500_000;

/**
 * Returns the first due job of at least a given weight, of the first line behind `from` that has one and not for a
 * target in `full_targets` (JSON). Names its index, because SQLite would otherwise scan all that waits.
 */
export const heavyBehind = prepared(
  (
    db,
    { kind, from, now, full_targets }: { kind: string; from: string; now: number; full_targets: string },
  ) =>
    statement<DueRow>(
      db,
      sql`select id, payload, attempts, failures, account, account_slots, weight, target from jobs indexed by jobs_heavy
    where kind = ${kind} and ${READY} and ${HEAVY} and ${ACCOUNT} > ${from} and run_at <= ${now}
      and ${isFree(ACCOUNT, sql.raw("target"), full_targets)}
    order by ${ACCOUNT}, run_at, id limit 1`,
    ),
);

/** Returns a job if it is still ready: not ended, not begun, and not waiting again. */
export const readyJob = prepared((db, { id }: { id: string }) =>
  statement<DueRow>(
    db,
    sql`select id, payload, attempts, failures, account, account_slots, weight, target from jobs
    where id = ${id} and ${READY}`,
  ),
);

/** Returns the id of a job that waits or runs in a lane, by the exact condition of the partial index. */
export const jobInLane = prepared((db, { lane }: { lane: string }) =>
  statement<{ id: string }>(
    db,
    sql`select id from jobs where lane = ${lane} and status in ('pending', 'running') limit 1`,
  ),
);

/** Returns the jobs that wait or run in a lane, in their order, by the same condition. */
export const jobsInLane = prepared((db, { lane }: { lane: string }) =>
  db
    .selectFrom("jobs")
    .select(["id", "kind", "payload"])
    .where("lane", "=", lane)
    .where(UNENDED)
    .orderBy("id"),
);

/** The condition that a job's target takes one more, of this line as well. */
function isFree(line: RawBuilder<unknown>, target: RawBuilder<unknown>, full_targets: string) {
  return sql`(${target} is null or (${target} not in (select value from json_each(${full_targets}))
    and ${line} || char(10) || ${target} not in (select value from json_each(${full_targets}))))`;
}

function statement<Row>(db: Db, query: RawBuilder<unknown>): Compilable<Row> {
  return { compile: () => (query as RawBuilder<Row>).compile(db) };
}
