import { type Kysely, sql } from "kysely";

/** A call of a tool that waits for its owner's consent, and the message that answers it. */
export const approvals = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("approvals")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
      .addColumn("inbox_id", "text", (column) =>
        column.notNull().references("inboxes.id").onDelete("cascade"),
      )
      .addColumn("message_id", "text", (column) =>
        column.notNull().references("messages.id").onDelete("cascade"),
      )
      .addColumn("connection_id", "text", (column) => column.notNull())
      .addColumn("target", "text", (column) => column.notNull())
      .addColumn("tool", "text", (column) => column.notNull())
      .addColumn("arguments", "text", (column) => column.notNull())
      .addColumn("hash", "text", (column) => column.notNull())
      .addColumn("cause", "text", (column) => column.notNull())
      .addColumn("tainted", "integer", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .addColumn("run_id", "text")
      .addColumn("outcome", "text")
      .addColumn("letter_id", "text")
      .addColumn("expires_at", "integer", (column) => column.notNull())
      .addColumn("decided_at", "integer")
      .addColumn("created", "integer", (column) => column.notNull())
      .execute();
    await db.schema.createIndex("approvals_user").on("approvals").columns(["user_id", "id"]).execute();
    await db.schema.createIndex("approvals_inbox").on("approvals").column("inbox_id").execute();
    await db.schema.createIndex("approvals_message").on("approvals").column("message_id").execute();
    await db.schema.createIndex("approvals_expiry").on("approvals").column("expires_at").execute();
    await db.schema.alterTable("messages").addColumn("approval_id", "text").execute();
    await db.schema.alterTable("reply_tokens").addColumn("approval_id", "text").execute();
    await db.schema
      .alterTable("connections")
      .addColumn("ask_tools", "text", (column) => column.notNull().defaultTo(sql.lit("[]")))
      .execute();
  },
};
