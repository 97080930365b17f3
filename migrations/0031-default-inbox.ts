import type { Kysely } from "kysely";

/** The inbox that calls go to which name none; without one it is the oldest. */
export const defaultInbox = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("users").addColumn("default_inbox_id", "text").execute();
  },
};
