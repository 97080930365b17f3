import type { Kysely } from "kysely";

export const outbound = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .createTable("transport_policies")
      .addColumn("domain", "text", (c) => c.primaryKey())
      .addColumn("policy_id", "text", (c) => c.notNull())
      .addColumn("mode", "text", (c) => c.notNull())
      .addColumn("mx", "text", (c) => c.notNull())
      .addColumn("expires", "bigint", (c) => c.notNull())
      .execute();
    await db.schema
      .createTable("suppressions")
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("address", "text", (c) => c.notNull())
      .addColumn("reason", "text", (c) => c.notNull())
      .addColumn("soft_bounces", "integer", (c) => c.notNull())
      .addColumn("suppressed_at", "bigint")
      .addColumn("updated", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("suppressions_pk", ["user_id", "address"])
      .execute();
    await db.schema
      .createTable("undelivered_answers")
      .addColumn("outgoing_id", "text", (c) =>
        c.primaryKey().references("outgoing_mails.id").onDelete("cascade"),
      )
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .execute();
    await db.schema
      .createIndex("undelivered_answers_user_id")
      .on("undelivered_answers")
      .column("user_id")
      .execute();
  },
};
