import { type Kysely, sql } from "kysely";

/** Due jobs are looked for account by account: thousands that wait for one of them are then in nobody's way. */
export const dueJobs = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.dropIndex("jobs_kind_status_run_at_id").execute();
    await sql`create index jobs_due on jobs (kind, status, coalesce(account, ''), run_at, id)`.execute(db);
  },
};
