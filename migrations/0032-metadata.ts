import type { Kysely } from "kysely";

/** What the maker of a call notes on it, as a JSON object of texts. */
export const metadata = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("messages")
      .addColumn("metadata", "text", (c) => c.notNull().defaultTo("{}"))
      .execute();
  },
};
