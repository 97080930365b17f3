import { type Kysely, sql } from "kysely";

/** Which browsers asked for the login code of an address, with or without an account, and what each has tried. */
export const codeAskers = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("code_askers")
      .addColumn("address", "text", (c) => c.notNull())
      .addColumn("place", "integer", (c) => c.notNull())
      .addColumn("token_hash", "text", (c) => c.notNull())
      .addColumn("network", "text", (c) => c.notNull())
      .addColumn("attempts", "integer", (c) => c.notNull())
      .addColumn("asked", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("code_askers_pk", ["address", "place"])
      .addCheckConstraint("code_askers_places", sql`place between 0 and 3`)
      .execute();
    await db.schema.createIndex("code_askers_asked").on("code_askers").column("asked").execute();
  },
};
