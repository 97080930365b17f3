import { type Kysely, sql } from "kysely";

/** What waits behind others of its lane is known as such: a claim looks at the first of each, however many are behind it. */
export const firstOfLane = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("jobs")
      .addColumn("behind", "integer", (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema.dropIndex("jobs_lane_status_id").execute();
    await sql`create index jobs_lane on jobs (lane, id)
      where lane is not null and status in ('pending', 'running')`.execute(db);
    await db.schema.dropIndex("jobs_due").execute();
    await sql`update jobs set behind = 1
      where lane is not null and status in ('pending', 'running') and exists (
        select 1 from jobs as earlier
        where earlier.lane = jobs.lane and earlier.status in ('pending', 'running') and earlier.id < jobs.id)`.execute(
      db,
    );
    await sql`create index jobs_due on jobs (kind, status, behind, coalesce(account, ''), run_at, id)`.execute(
      db,
    );
  },
};
