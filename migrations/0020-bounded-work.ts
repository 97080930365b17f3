import { type Kysely, sql } from "kysely";

/** What is deleted is gone at once; what it leaves behind is cleared away some at a time. */
export const boundedWork = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of ["inboxes", "webhook_endpoints"])
      await db.schema.alterTable(table).addColumn("deleted_at", "bigint").execute();
    // How often an inbox got another address, and which of them a token is good with.
    await db.schema
      .alterTable("inboxes")
      .addColumn("rotations", "integer", (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema
      .alterTable("reply_tokens")
      .addColumn("rotation", "integer", (c) => c.notNull().defaultTo(0))
      .execute();
    const inbox = db.schema.createIndex("conversations_inbox_id").on("conversations").column("inbox_id");
    await inbox.where(sql.ref("inbox_id"), "is not", null).execute();
  },
};
