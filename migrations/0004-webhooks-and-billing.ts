import { type Kysely, sql } from "kysely";

export const webhooksAndBilling = {
  async up(db: Kysely<unknown>): Promise<void> {
    await createWebhookTables(db);
    await createBillingTables(db);
    await db.schema.alterTable("outgoing_mails").addColumn("event_id", "text").execute();
    await db.schema
      .alterTable("ledger")
      .addColumn("pool", "text", (c) => c.notNull().defaultTo("allowance"))
      .execute();
    await db.schema.alterTable("ledger").addColumn("reference", "text").execute();
    // A payment counts once, however often its provider tells of it.
    const paid = db.schema.createIndex("ledger_reference").on("ledger").column("reference").unique();
    await paid.where(sql.ref("reference"), "is not", null).execute();
    // What was given and not spent, which is little.
    const given = db.schema.createIndex("ledger_given").on("ledger").columns(["user_id", "period"]);
    await given.where(sql.ref("message_id"), "is", null).execute();
    // Holds all that sums of usage ask for: the rows themselves are long, and scattered.
    const usage = db.schema.createIndex("messages_usage").on("messages");
    await usage
      .columns([
        "user_id",
        "created",
        "source",
        "inbox_id",
        "credits_charged",
        "input_tokens",
        "output_tokens",
      ])
      .where(sql.ref("state"), "=", "done")
      .execute();
  },
};

async function createWebhookTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("events")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
    .addColumn("type", "text", (c) => c.notNull())
    .addColumn("message_id", "text")
    .addColumn("livemode", "integer", (c) => c.notNull())
    .addColumn("body", "text", (c) => c.notNull())
    .addColumn("created", "bigint", (c) => c.notNull())
    .execute();
  await db.schema
    .createTable("webhook_endpoints")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
    .addColumn("url", "text", (c) => c.notNull())
    .addColumn("event_types", "text", (c) => c.notNull())
    .addColumn("enabled", "integer", (c) => c.notNull())
    .addColumn("sealed", "blob", (c) => c.notNull())
    .addColumn("old_secret_until", "bigint")
    .addColumn("consecutive_failures", "integer", (c) => c.notNull())
    .addColumn("disabled_reason", "text")
    .addColumn("description", "text")
    .addColumn("created", "bigint", (c) => c.notNull())
    .addColumn("updated", "bigint", (c) => c.notNull())
    .execute();
  await db.schema
    .createTable("webhook_deliveries")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("endpoint_id", "text", (c) =>
      c.notNull().references("webhook_endpoints.id").onDelete("cascade"),
    )
    .addColumn("event_id", "text", (c) => c.notNull().references("events.id").onDelete("cascade"))
    .addColumn("status", "text", (c) => c.notNull())
    .addColumn("attempts", "integer", (c) => c.notNull())
    .addColumn("response_status", "integer")
    .addColumn("response_body", "text")
    .addColumn("error", "text")
    .addColumn("duration_ms", "integer")
    .addColumn("url", "text", (c) => c.notNull())
    .addColumn("created", "bigint", (c) => c.notNull())
    .addColumn("last_attempt_at", "bigint")
    .addColumn("next_attempt_at", "bigint")
    .addColumn("delivered_at", "bigint")
    .execute();
  for (const [table, columns] of [
    ["events", ["user_id", "id"]],
    ["webhook_endpoints", ["user_id"]],
    ["webhook_deliveries", ["endpoint_id", "id"]],
    ["webhook_deliveries", ["endpoint_id", "status", "next_attempt_at", "id"]],
    ["webhook_deliveries", ["event_id"]],
  ] as const)
    await db.schema
      .createIndex(`${table}_${columns.join("_")}`)
      .on(table)
      .columns([...columns])
      .execute();
}

async function createBillingTables(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable("billing_accounts")
    .addColumn("user_id", "text", (c) => c.primaryKey().references("users.id").onDelete("cascade"))
    .addColumn("customer_id", "text", (c) => c.notNull().unique())
    .addColumn("subscription_id", "text")
    .addColumn("status", "text")
    .addColumn("interval", "text")
    .addColumn("period_start", "bigint")
    .addColumn("period_end", "bigint")
    .addColumn("cancel_at_period_end", "integer", (c) => c.notNull())
    .addColumn("changed", "bigint", (c) => c.notNull())
    .execute();
  await db.schema
    .createTable("billing_events")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("type", "text", (c) => c.notNull())
    .addColumn("created", "bigint", (c) => c.notNull())
    .execute();
  await db.schema
    .createTable("owner_notices")
    .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
    .addColumn("kind", "text", (c) => c.notNull())
    .addColumn("day", "text", (c) => c.notNull())
    .addPrimaryKeyConstraint("owner_notices_pk", ["user_id", "kind", "day"])
    .execute();
}
