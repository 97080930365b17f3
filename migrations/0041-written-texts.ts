import type { Kysely } from "kysely";

/** What tools were given to write, as hashes: it may come back as a mail in the name of the owner. */
export const writtenTexts = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("written_texts")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("hash", "blob", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull())
      .execute();
    for (const columns of [["hash"], ["user_id", "id"], ["created"]])
      await db.schema
        .createIndex(`written_texts_${columns.join("_")}`)
        .on("written_texts")
        .columns(columns)
        .execute();
  },
};
