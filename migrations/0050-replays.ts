import type { Kysely } from "kysely";

/** Runs of a message once more, with another model, other words or other contexts, beside the one that counts. */
export const replays = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("replays")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
      .addColumn("message_id", "text", (column) =>
        column.notNull().references("messages.id").onDelete("cascade"),
      )
      .addColumn("key_id", "text")
      .addColumn("asked", "text", (column) => column.notNull())
      .addColumn("state", "text", (column) => column.notNull())
      .addColumn("reason", "text")
      .addColumn("error", "text")
      .addColumn("result", "text", (column) => column.notNull())
      .addColumn("steps", "text", (column) => column.notNull())
      .addColumn("contexts", "text", (column) => column.notNull())
      .addColumn("model", "text")
      .addColumn("input_tokens", "integer")
      .addColumn("output_tokens", "integer")
      .addColumn("credits_charged", "integer", (column) => column.notNull())
      .addColumn("created", "integer", (column) => column.notNull())
      .addColumn("completed", "integer")
      .addColumn("duration_ms", "integer")
      .execute();
    await db.schema.createIndex("replays_message").on("replays").columns(["message_id", "id"]).execute();
    await db.schema.createIndex("replays_user").on("replays").columns(["user_id", "created"]).execute();
  },
};
