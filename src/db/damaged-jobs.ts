import { sql } from "kysely";
import type { Db } from "./group-commit.ts";
import type { JobRow } from "./schema.ts";

const STATES: JobRow["status"][] = ["pending", "running", "dead"];
const COUNTS = ["attempts", "failures", "weight"] as const;

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
        eb("status", "not in", STATES),
        eb("behind", "not in", [0, 1]),
        eb("later", "not in", [0, 1]),
        eb("run_at", ">", last),
        ...(["run_at", ...COUNTS] as const).map(
          (name) => sql<boolean>`typeof(${sql.ref(name)}) <> 'integer'`,
        ),
        sql<boolean>`typeof(account_slots) not in ('integer', 'null')`,
      ]),
    )
    .execute();
}

/** Whether the row of a damaged job still says how far it was. */
export function hasState({ status }: JobRow): boolean {
  return STATES.includes(status);
}

/** Has a claim find a damaged job: at its time, or now where there is none any more. `last`: the latest time of a job. */
export async function beginAnew(
  tx: Db,
  row: JobRow,
  { now, last }: { now: number; last: number },
): Promise<void> {
  const lost = COUNTS.filter((name) => !Number.isInteger(row[name]));
  const is_time = Number.isInteger(row.run_at) && row.run_at <= last;
  await tx
    .updateTable("jobs")
    .set({
      ...Object.fromEntries(lost.map((name) => [name, 0])),
      ...(is_time ? {} : { run_at: now }),
      ...(Number.isInteger(row.account_slots) ? {} : { account_slots: null }),
      // The next claim sees whether its time has come.
      later: 1,
      behind: sql<number>`case when lane is null then 0 else id > (
        select id from jobs as first where first.lane = jobs.lane and first.status in ('pending', 'running')
        order by id limit 1) end`,
      status: "pending",
      lease_until: null,
    })
    .where("id", "=", row.id)
    .execute();
}
