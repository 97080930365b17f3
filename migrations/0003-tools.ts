import type { Kysely } from "kysely";

export const tools = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("oauth_states")
      .addColumn("state_hash", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("provider", "text", (c) => c.notNull())
      .addColumn("connection_id", "text", (c) => c.references("connections.id").onDelete("cascade"))
      .addColumn("sealed", "blob", (c) => c.notNull())
      .addColumn("cookie_hash", "text")
      .addColumn("created", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createTable("tool_calls")
      .addColumn("message_id", "text", (c) => c.notNull().references("messages.id").onDelete("cascade"))
      .addColumn("fingerprint", "text", (c) => c.notNull())
      .addColumn("outcome", "text")
      .addColumn("created", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("tool_calls_pk", ["message_id", "fingerprint"])
      .execute();
    await db.schema
      .alterTable("outgoing_mails")
      .addColumn("private", "integer", (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema.createIndex("oauth_states_user_id").on("oauth_states").column("user_id").execute();
    await db.schema
      .createIndex("oauth_states_connection_id")
      .on("oauth_states")
      .column("connection_id")
      .execute();
  },
};
