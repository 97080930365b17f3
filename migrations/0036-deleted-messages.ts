import { type Kysely, sql } from "kysely";

/** A message that its owner deletes is hidden at once, and erased once nobody can want it back. */
export const deletedMessages = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("messages").addColumn("deleted_at", "integer").execute();
    await sql`create index messages_deleted on messages (user_id, id) where deleted_at is not null`.execute(
      db,
    );
  },
};
