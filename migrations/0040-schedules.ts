import { type Kysely, sql } from "kysely";

/** A schedule runs a message again and again, and each of these runs says which schedule made it. */
export const schedules = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("schedules")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
      .addColumn("inbox_id", "text", (column) =>
        column.notNull().references("inboxes.id").onDelete("cascade"),
      )
      .addColumn("message_id", "text", (column) =>
        column.notNull().references("messages.id").onDelete("cascade"),
      )
      .addColumn("title", "text", (column) => column.notNull())
      .addColumn("pattern", "text")
      .addColumn("at", "integer")
      .addColumn("timezone", "text", (column) => column.notNull())
      .addColumn("until", "integer")
      .addColumn("over", "text")
      .addColumn("status", "text", (column) => column.notNull())
      .addColumn("reason", "text")
      .addColumn("next_at", "integer")
      .addColumn("last_at", "integer")
      .addColumn("failures", "integer", (column) => column.notNull().defaultTo(0))
      .addColumn("created", "integer", (column) => column.notNull())
      .addColumn("updated", "integer", (column) => column.notNull())
      .execute();
    await db.schema.createIndex("schedules_user").on("schedules").columns(["user_id", "id"]).execute();
    await db.schema.createIndex("schedules_inbox").on("schedules").column("inbox_id").execute();
    await db.schema.createIndex("schedules_message").on("schedules").column("message_id").execute();
    await db.schema.alterTable("messages").addColumn("schedule_id", "text").execute();
    await db.schema
      .createIndex("messages_schedule")
      .on("messages")
      .columns(["schedule_id", "id"])
      .where(sql.ref("schedule_id"), "is not", null)
      .execute();
  },
};
