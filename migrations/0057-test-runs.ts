import { type Kysely, sql } from "kysely";

/** Starred messages, each with what its answer should be, and runs of all of them at once. */
export const testRuns = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("starred_messages")
      .addColumn("message_id", "text", (column) =>
        column.primaryKey().references("messages.id").onDelete("cascade"),
      )
      .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
      .addColumn("expected", "text", (column) => column.notNull())
      .addColumn("created", "integer", (column) => column.notNull())
      .execute();
    await db.schema
      .createIndex("starred_messages_user")
      .on("starred_messages")
      .columns(["user_id", "message_id"])
      .execute();
    await db.schema
      .createTable("test_runs")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
      .addColumn("asked", "text", (column) => column.notNull())
      .addColumn("created", "integer", (column) => column.notNull())
      .execute();
    await db.schema.createIndex("test_runs_user").on("test_runs").columns(["user_id", "id"]).execute();
    await db.schema
      .alterTable("replays")
      .addColumn("test_run_id", "text", (column) => column.references("test_runs.id").onDelete("cascade"))
      .execute();
    for (const column of ["expected", "differs"])
      await db.schema.alterTable("replays").addColumn(column, "text").execute();
    await db.schema.alterTable("replays").addColumn("passed", "integer").execute();
    await db.schema.createIndex("replays_test_run").on("replays").columns(["test_run_id", "id"]).execute();
    // They are made anew at the start, and count what is expected as well.
    for (const what of ["insert", "update", "delete"])
      await sql.raw(`drop trigger if exists storage_replay_${what}`).execute(db);
  },
};
