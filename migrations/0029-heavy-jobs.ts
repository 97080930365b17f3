import { type Kysely, sql } from "kysely";

/** What may wait for memory is found among all that waits for a turn. */
export const heavyJobs = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`create index jobs_heavy on jobs (kind, coalesce(account, ''), run_at, id)
      where status = 'pending' and behind = 0 and later = 0 and weight > 2500000`.execute(db);
  },
};
