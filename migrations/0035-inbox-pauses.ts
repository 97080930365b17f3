import type { Kysely } from "kysely";

/** Inboxes can be paused, say what to do with mail that says nothing itself, and have an address that their owner chose. */
export const inboxPauses = {
  async up(db: Kysely<unknown>): Promise<void> {
    const inboxes = db.schema.alterTable("inboxes");
    await inboxes.addColumn("paused", "text").execute();
    await inboxes.addColumn("default_instruction", "text").execute();
    await inboxes.addColumn("named", "integer", (c) => c.notNull().defaultTo(0)).execute();
  },
};
