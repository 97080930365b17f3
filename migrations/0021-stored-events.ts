import { type Kysely, sql } from "kysely";

/** What events say counts among what an account stores. */
export const storedEvents = {
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`update account_storage set bytes = bytes
      + coalesce((select sum(octet_length(e.body)) from events e where e.user_id = account_storage.user_id), 0)`.execute(
      db,
    );
  },
};
