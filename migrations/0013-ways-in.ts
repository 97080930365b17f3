import type { Kysely } from "kysely";

/** Who set out for a consent page, and with which key something was done; an address proves nobody any more. */
export const waysIn = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema.alterTable("pending_passwords").dropColumn("client").execute();
    await db.schema.alterTable("oauth_states").dropColumn("cookie_hash").execute();
    await db.schema.alterTable("oauth_states").addColumn("session_id", "text").execute();
    await db.schema.alterTable("oauth_states").addColumn("api_key", "text").execute();
    await db.schema.alterTable("security_events").addColumn("api_key", "text").execute();
  },
};
