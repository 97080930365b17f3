import { type Kysely, sql } from "kysely";

export const retention = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("users").addColumn("deleted_at", "bigint").execute();
    await db.schema.alterTable("users").addColumn("plan_changed_at", "bigint").execute();
    // Each holds only what has not been purged yet, so that looking for it costs the same after years.
    for (const [table, columns] of [
      ["raw_mails", ["created"]],
      ["attachments", ["created"]],
      ["message_contents", ["purged_at", "message_id"]],
    ] as const) {
      const kept = db.schema
        .createIndex(`${table}_kept`)
        .on(table)
        .columns([...columns]);
      await kept.where(sql.ref("purged_at"), "is", null).execute();
    }
    const mails = db.schema.createIndex("outgoing_mails_kept").on("outgoing_mails").column("created");
    await mails.where(sql.ref("raw"), "is not", null).execute();
    const events = db.schema.createIndex("events_message_id").on("events").column("message_id");
    await events.where(sql.ref("message_id"), "is not", null).execute();
    const inboxes = db.schema.createIndex("inboxes_retention").on("inboxes").column("id");
    await inboxes.where(sql.ref("retention_days"), "is not", null).execute();
    for (const [table, column] of [
      ["idempotency_keys", "created"],
      ["billing_events", "created"],
      ["owner_notices", "day"],
    ] as const)
      await db.schema.createIndex(`${table}_${column}`).on(table).column(column).execute();
  },
};
