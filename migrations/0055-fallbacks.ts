import { type Kysely, sql } from "kysely";

/** The connections that are asked one after the other where one does not answer, as a JSON list; before it was one. */
export const fallbacks = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("connections")
      .addColumn("fallback_connection_ids", "text", (c) => c.notNull().defaultTo("[]"))
      .execute();
    await sql`update connections set fallback_connection_ids = json_array(fallback_connection_id)
      where fallback_connection_id is not null`.execute(db);
    await db.schema.dropIndex("connections_fallback_connection_id").execute();
    await db.schema.alterTable("connections").dropColumn("fallback_connection_id").execute();
  },
};
