import { type Kysely, sql } from "kysely";

/**
 * Answers of digests that are still on their way, and were made before runs noted from where on they have read: they began behind the
 * run before them at the latest. If one does not arrive, the next digest begins there.
 */
export const readByOlder = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`update messages set read_from = coalesce(
        (select max(earlier.id) from messages as earlier
          where earlier.schedule_id = messages.schedule_id and earlier.id < messages.id and earlier.state = 'done'), '')
      where schedule_id in (select id from schedules where over is not null)
        and state = 'done' and read_from is null and reply_status in ('queued', 'deferred')`.execute(db);
  },
};
