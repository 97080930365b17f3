import type { Kysely } from "kysely";

/** Which session or key set out for a consent page, and with which key something was done to an account. */
export const waysIn = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("oauth_states").addColumn("session_id", "text").execute();
    await db.schema.alterTable("oauth_states").addColumn("api_key", "text").execute();
    await db.schema.alterTable("security_events").addColumn("api_key", "text").execute();
  },
};
