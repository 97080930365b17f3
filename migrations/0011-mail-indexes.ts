import { type Kysely, sql } from "kysely";

/** What only a mail has is looked for among the mails: calls over HTTP need not stand in these. */
export const mailIndexes = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const [name, columns, part] of [
      ["messages_inbox_id_sender_created", ["inbox_id", "sender", "created"], "sender"],
      ["messages_inbox_id_dedupe_key", ["inbox_id", "dedupe_key"], "dedupe_key"],
    ] as const) {
      await db.schema.dropIndex(name).execute();
      const index = db.schema
        .createIndex(name)
        .on("messages")
        .columns([...columns]);
      await index.where(sql.ref(part), "is not", null).execute();
    }
  },
};
