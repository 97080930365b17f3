import { type Kysely, sql } from "kysely";

/** A schedule keeps up to which message its digests have read, and no longer goes by the row of its last run. */
export const readByDigests = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("schedules").addColumn("read_up_to", "text").execute();
    await sql`update schedules set read_up_to =
      (select max(id) from messages where schedule_id = schedules.id and state = 'done')`.execute(db);
  },
};
