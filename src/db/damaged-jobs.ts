import { sql } from "kysely";
import type { Db } from "./group-commit.ts";
import type { JobRow } from "./schema.ts";

export const JOB_STATUSES: JobRow["status"][] = ["pending", "running", "dead"];
export const JOB_COUNTS = ["attempts", "failures", "weight"] as const;

/**
 * Returns the jobs that no claim would ever find, because a damaged disk has changed a word or a number of their rows. Those that
 * were given up wait for nobody, and those that are under way are written anew when they end.
 */
export function damagedJobs(
  tx: Db,
  { kinds, last, steady_now }: { kinds: string[]; last: number; steady_now: number },
): Promise<JobRow[]> {
  return tx
    .selectFrom("jobs")
    .selectAll()
    .where("status", "!=", "dead")
    .where((eb) => eb.or([eb("status", "!=", "running"), eb("lease_until", "<=", steady_now)]))
    .where((eb) =>
      eb.or([
        eb("kind", "not in", kinds),
        eb("status", "not in", JOB_STATUSES),
        eb("behind", "not in", [0, 1]),
        eb("later", "not in", [0, 1]),
        eb("run_at", ">", last),
        ...(["run_at", ...JOB_COUNTS] as const).map(
          (name) => sql<boolean>`typeof(${sql.ref(name)}) not in ('integer', 'real')`,
        ),
        sql<boolean>`typeof(account_slots) not in ('integer', 'real', 'null')`,
      ]),
    )
    .execute();
}

/** The value of `behind` that a job should have: whether an earlier one of its lane waits or runs. */
export const PLACE_IN_LANE = sql<number>`case when lane is null then 0 else id > (
  select id from jobs as first where first.lane = jobs.lane and first.status in ('pending', 'running')
  order by id limit 1) end`;
