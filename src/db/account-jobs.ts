import { sql } from "kysely";
import type { Db } from "./database.ts";
import { IS_ENTRUSTED } from "./orphans.ts";

interface Wanted {
  /** Every job kind, so that the query can use the index on (kind, status). */
  kinds: readonly string[];
  /** Values of `jobs.account` that stand for the account; see `lineOf`. */
  lines: string[];
}

/**
 * Deletes the account's jobs that a worker holds now; there are no more of them than worker slots. Neither function
 * here
 * deletes mail entrusted to the account's owner as the administrator: whoever administers the server next has to see
 * it.
 */
export async function deleteRunningJobs(tx: Db, wanted: Wanted): Promise<void> {
  await sql`delete from jobs where id in (${jobsIn(wanted, ["running"])})`.execute(tx);
}

/** Deletes at most `limit` jobs of an account in any state. Returns how many it deleted. */
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
