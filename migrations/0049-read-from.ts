import type { Kysely } from "kysely";

/** From where on the run of a digest has read: if its answer does not arrive, the next one begins there. */
export const readFrom = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("messages").addColumn("read_from", "text").execute();
  },
};
