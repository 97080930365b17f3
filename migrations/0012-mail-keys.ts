import type { Kysely } from "kysely";

export const mailKeys = {
  async up(db: Kysely<unknown>): Promise<void> {
    // 0 of a mail that anybody may have sent again; of everything that was there before, what counted for it then.
    await db.schema
      .alterTable("messages")
      .addColumn("vouched", "integer", (c) => c.notNull().defaultTo(1))
      .execute();
    await db.schema
      .alterTable("messages")
      .addColumn("mails", "integer", (c) => c.notNull().defaultTo(1))
      .execute();
    // Beside the messages and not in them: a mail that is there still has its key itself, so accepting one writes nothing here.
    await db.schema
      .createTable("mail_keys")
      .addColumn("inbox_id", "text", (c) => c.notNull().references("inboxes.id").onDelete("cascade"))
      .addColumn("key_hash", "blob", (c) => c.notNull())
      .addColumn("authority", "text", (c) => c.notNull())
      .addColumn("vouched", "integer", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("mail_keys_pk", ["inbox_id", "key_hash"])
      .execute();
    await db.schema.createIndex("mail_keys_created").on("mail_keys").column("created").execute();
  },
};
