import { type Compilable, type RawBuilder, sql } from "kysely";
import type { Db } from "./group-commit.ts";
import { prepared } from "./prepared.ts";
import type { JobRow } from "./schema.ts";

/** As the index has it: one that says "no account" as a value. */
const ACCOUNT = sql.raw("coalesce(account, '')");

/** The accounts that have pending jobs of a kind, not counting those that wait for their lane. Each is looked for behind the one before, whatever lies between. */
const pendingAccounts = (kind: string) => sql`
    with recursive found (account) as (
      select (select ${ACCOUNT} from jobs where kind = ${kind} and status = 'pending' and behind = 0 order by ${ACCOUNT} limit 1)
      union all
      select (select ${ACCOUNT} from jobs where kind = ${kind} and status = 'pending' and behind = 0 and ${ACCOUNT} > found.account
          order by ${ACCOUNT} limit 1)
        from found where found.account is not null
    )
    select account from found where account is not null`;

/** A pending job, as far as it matters for taking it. */
export type DueRow = Pick<
  JobRow,
  "id" | "payload" | "attempts" | "failures" | "account" | "account_slots" | "weight" | "target"
>;

/** What is looked for. */
export interface Due {
  kind: string;
  now: number;
  /** Jobs of each account. */
  limit: number;
  /** Those that are larger are left out. */
  weight: number;
  /** As JSON; jobs for them are left out. */
  full_targets: string;
}

/**
 * The first due jobs of each account, those that have been due for longest before the others; none of a kind that is
 * held, and none that waits for its lane. However many wait for a target or for memory, those behind them are found: each
 * costs less than a microsecond, and a limit on how many are looked at would hide the rest of the account.
 */
export const dueOfEach = prepared((db, { kind, now, limit, weight, full_targets }: Due) =>
  statement<DueRow>(
    db,
    sql`select id, payload, attempts, failures, job.account, account_slots, weight, target
    from (${pendingAccounts(kind)}) as accounts cross join jobs as job on job.id in (
      select due.id from jobs as due
      where due.kind = ${kind} and due.status = 'pending' and due.behind = 0 and ${ACCOUNT} = accounts.account and due.run_at <= ${now}
        and due.weight <= ${weight}
        and (due.target is null or due.target not in (select value from json_each(${full_targets})))
      order by due.run_at, due.id limit ${limit}
    )
    where not exists (select 1 from held_kinds where held_kinds.kind = ${kind})
    order by job.run_at, job.id`,
  ),
);

/** The unix second at which the next job of a kind that waits for no lane falls due; null for none. */
export const nextRun = prepared((db, { kind, now }: Pick<Due, "kind" | "now">) =>
  statement<{ run_at: number | null }>(
    db,
    sql`select min((
      select run_at from jobs
      where kind = ${kind} and status = 'pending' and behind = 0 and ${ACCOUNT} = accounts.account and run_at > ${now}
      order by run_at limit 1
    )) as run_at from (${pendingAccounts(kind)}) as accounts`,
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
