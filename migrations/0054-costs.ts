import type { Kysely } from "kysely";

/** What models cost: of a message, of a replay, and of a month, which budgets are measured by. */
export const costs = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of ["users", "connections", "inboxes"])
      await db.schema.alterTable(table).addColumn("monthly_budget", "integer").execute();
    for (const table of ["messages", "replays"])
      await db.schema.alterTable(table).addColumn("cost", "integer").execute();
    await db.schema
      .createTable("model_costs")
      .addColumn("user_id", "text", (column) => column.notNull().references("users.id").onDelete("cascade"))
      .addColumn("month", "text", (column) => column.notNull())
      .addColumn("inbox_id", "text", (column) => column.notNull())
      .addColumn("connection_id", "text", (column) => column.notNull())
      .addColumn("cost", "integer", (column) => column.notNull())
      .addPrimaryKeyConstraint("model_costs_by", ["user_id", "month", "inbox_id", "connection_id"])
      .execute();
  },
};
