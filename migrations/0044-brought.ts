import type { Kysely } from "kysely";

/** What a message came with beside its words: its job says it as well, but ends with the run. */
export const brought = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("messages").addColumn("brought", "text").execute();
  },
};
