import type { Kysely } from "kysely";

/** Of what a tool was given to write, the sender whose own words it was: these may well write the same once more. */
export const writtenBy = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("written_texts").addColumn("author", "text").execute();
  },
};
