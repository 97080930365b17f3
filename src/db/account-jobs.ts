import { sql } from "kysely";
import type { Db } from "./database.ts";
import { IS_ENTRUSTED } from "./orphans.ts";

interface Wanted {
  /** All kinds that there are, so that an index can be used. */
  kinds: readonly string[];
  /** The lines of an account, as rows of jobs name them. */
  lines: string[];
}

/**
 * Deletes the jobs of an account that are being worked on: they are no more than there are slots. Neither this nor the
 * next one takes what was entrusted to its owner as the administrator: that is for whoever administers then.
 */
export async function deleteRunningJobs(tx: Db, wanted: Wanted): Promise<void> {
  await sql`delete from jobs where id in (${jobsIn(wanted, ["running"])})`.execute(tx);
}

/** Deletes jobs of an account, no more than `limit`; gives how many. */
export async function deleteSomeJobs(tx: Db, wanted: Wanted, limit: number): Promise<number> {
  const some = jobsIn(wanted, ["pending", "running", "dead"]);
  const { numAffectedRows = 0n } = await sql`delete from jobs where id in (${some} limit ${limit})`.execute(
    tx,
  );
  return Number(numAffectedRows);
}

function jobsIn({ kinds, lines }: Wanted, statuses: string[]) {
  const listed = (texts: readonly string[]) => sql`select value from json_each(${JSON.stringify(texts)})`;
  return sql`select id from jobs where kind in (${listed(kinds)}) and status in (${listed(statuses)})
    and coalesce(account, '') in (${listed(lines)}) and not ${IS_ENTRUSTED}`;
}
