import type { Kysely } from "kysely";

/** A message whose work was done by a retry that has been deleted since must not be tried again. */
export const redoneMessages = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("messages")
      .addColumn("redone", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
  },
};
