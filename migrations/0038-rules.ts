import type { Kysely } from "kysely";

/** Inboxes have rules, and a message says which of them were for it. */
export const rules = {
  async up(db: Kysely<unknown>): Promise<void> {
    const inboxes = db.schema.alterTable("inboxes");
    await inboxes.addColumn("rules", "text", (column) => column.notNull().defaultTo("[]")).execute();
    const messages = db.schema.alterTable("messages");
    await messages.addColumn("rules", "text", (column) => column.notNull().defaultTo("{}")).execute();
  },
};
