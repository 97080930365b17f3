import { type Kysely, sql } from "kysely";

/** What an API key has asked for or made, and the secrets of a connection as they were given: a consent is for these. */
export const askedByKeys = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("messages").addColumn("key_id", "text").execute();
    await db.schema
      .alterTable("connections")
      .addColumn("unconfirmed", "integer", (column) => column.notNull().defaultTo(sql.lit(0)))
      .execute();
    await db.schema.alterTable("connections").addColumn("secrets_id", "text").execute();
  },
};
