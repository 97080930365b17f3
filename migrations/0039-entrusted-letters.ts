import type { Kysely } from "kysely";

/** A letter that carries what somebody was told had been taken may come back when its job is gone. */
export const entrustedLetters = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("outgoing_mails")
      .addColumn("entrusted", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
  },
};
