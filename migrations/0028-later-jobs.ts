import { type Kysely, sql } from "kysely";

/** What waits for its time is known as such: a claim goes past none of it, however many accounts it is of. */
export const laterJobs = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("jobs")
      .addColumn("later", "integer", (c) => c.notNull().defaultTo(1))
      .execute();
    await db.schema.dropIndex("jobs_due").execute();
    await sql`create index jobs_due on jobs (kind, status, behind, later, coalesce(account, ''), run_at, id)`.execute(
      db,
    );
    await sql`create index jobs_later on jobs (kind, run_at) where later = 1 and status = 'pending'`.execute(
      db,
    );
  },
};
