import { type Kysely, sql } from "kysely";

/** Whether a message may tell what `@memory` has found, and those of a conversation that do, of which most have none. */
export const fromMemory = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("messages")
      .addColumn("from_memory", "integer", (column) => column.notNull().defaultTo(sql.lit(0)))
      .execute();
    await db.schema
      .createIndex("messages_from_memory")
      .on("messages")
      .columns(["conversation_id", "id"])
      .where(sql.ref("from_memory"), "=", sql.lit(1))
      .execute();
  },
};
