import type { Kysely } from "kysely";

export const heldKinds = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("held_kinds")
      .addColumn("kind", "text", (c) => c.primaryKey())
      .addColumn("since", "bigint", (c) => c.notNull())
      .execute();
  },
};
