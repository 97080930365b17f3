import type { Kysely } from "kysely";

/** The listed sender whose own words a tool was given to write, who may well write the same once more. */
export const writtenBy = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("written_texts").addColumn("author", "text").execute();
  },
};
