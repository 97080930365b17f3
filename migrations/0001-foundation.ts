import { type CreateTableBuilder, type Kysely, sql } from "kysely";

export const foundation = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of [...accountTables(db), ...mailTables(db), ...workTables(db)]) await table.execute();
    await createIndexes(db);
  },
};

function accountTables(db: Kysely<unknown>): CreateTableBuilder<string, string>[] {
  return [
    db.schema
      .createTable("users")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("email", "text", (c) => c.notNull().unique())
      .addColumn("email_verified", "integer", (c) => c.notNull())
      .addColumn("name", "text")
      .addColumn("plan", "text", (c) => c.notNull())
      .addColumn("is_admin", "integer", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("api_keys")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("name", "text")
      .addColumn("hash", "text", (c) => c.notNull().unique())
      .addColumn("prefix", "text", (c) => c.notNull())
      .addColumn("last4", "text", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("last_used_at", "bigint"),
    db.schema
      .createTable("connections")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("label", "text", (c) => c.notNull())
      .addColumn("model", "text")
      .addColumn("base_url", "text")
      .addColumn("sealed", "blob")
      .addColumn("credential_hint", "text")
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("last_error", "text")
      .addColumn("last_tested_at", "bigint")
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("updated", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("ledger")
      .addColumn("id", "integer", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("amount", "integer", (c) => c.notNull())
      .addColumn("balance", "integer", (c) => c.notNull())
      .addColumn("period", "text", (c) => c.notNull())
      .addColumn("message_id", "text")
      .addColumn("created", "bigint", (c) => c.notNull()),
  ];
}

function mailTables(db: Kysely<unknown>): CreateTableBuilder<string, string>[] {
  return [
    db.schema
      .createTable("inboxes")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("label", "text", (c) => c.notNull())
      .addColumn("prefix", "text")
      .addColumn("local_part", "text", (c) => c.notNull())
      .addColumn("domain", "text", (c) => c.notNull())
      .addColumn("default_connection_id", "text", (c) => c.references("connections.id").onDelete("set null"))
      .addColumn("mcp_connection_ids", "text", (c) => c.notNull())
      .addColumn("reply_enabled", "integer", (c) => c.notNull())
      .addColumn("allowlist_senders", "text", (c) => c.notNull())
      .addColumn("scope", "text")
      .addColumn("inbound_policy", "text", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("updated", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("retired_addresses")
      .addColumn("address", "text", (c) => c.primaryKey())
      .addColumn("retired_at", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("conversations")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("inbox_id", "text")
      .addColumn("subject", "text", (c) => c.notNull())
      .addColumn("turn_count", "integer", (c) => c.notNull())
      .addColumn("latest_sender", "text")
      .addColumn("snippet", "text", (c) => c.notNull())
      .addColumn("last_at", "bigint", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("reply_tokens")
      .addColumn("token", "text", (c) => c.primaryKey())
      .addColumn("conversation_id", "text", (c) =>
        c.notNull().references("conversations.id").onDelete("cascade"),
      )
      .addColumn("participant", "text", (c) => c.notNull()),
    messageTable(db),
    db.schema
      .createTable("raw_mails")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("size", "integer", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("purged_at", "bigint")
      .addColumn("segment", "integer")
      .addColumn("segment_offset", "bigint")
      .addColumn("bytes", "blob"),
    db.schema
      .createTable("message_contents")
      .addColumn("message_id", "text", (c) => c.primaryKey().references("messages.id").onDelete("cascade"))
      .addColumn("content", "text")
      .addColumn("purged_at", "bigint"),
    db.schema
      .createTable("attachments")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("message_id", "text", (c) => c.notNull().references("messages.id").onDelete("cascade"))
      .addColumn("direction", "text", (c) => c.notNull())
      .addColumn("filename", "text", (c) => c.notNull())
      .addColumn("content_type", "text", (c) => c.notNull())
      .addColumn("size", "integer", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("purged_at", "bigint")
      .addColumn("segment", "integer")
      .addColumn("segment_offset", "bigint")
      .addColumn("bytes", "blob"),
    db.schema
      .createTable("outgoing_mails")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("message_id", "text", (c) => c.references("messages.id").onDelete("cascade"))
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("envelope_from", "text", (c) => c.notNull())
      .addColumn("envelope_to", "text", (c) => c.notNull())
      .addColumn("rfc_message_id", "text", (c) => c.notNull())
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("attempts", "integer", (c) => c.notNull().defaultTo(0))
      .addColumn("response", "text")
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("completed", "bigint")
      .addColumn("raw", "blob"),
  ];
}

function messageTable(db: Kysely<unknown>): CreateTableBuilder<string, string> {
  return db.schema
    .createTable("messages")
    .addColumn("id", "text", (c) => c.primaryKey())
    .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
    .addColumn("inbox_id", "text", (c) => c.references("inboxes.id").onDelete("set null"))
    .addColumn("conversation_id", "text", (c) => c.references("conversations.id").onDelete("set null"))
    .addColumn("source", "text", (c) => c.notNull())
    .addColumn("state", "text", (c) => c.notNull())
    .addColumn("reason", "text")
    .addColumn("error", "text")
    .addColumn("authority", "text", (c) => c.notNull())
    .addColumn("sender", "text")
    .addColumn("subject", "text")
    .addColumn("instruction", "text")
    .addColumn("command", "text")
    .addColumn("result", "text", (c) => c.notNull().defaultTo(""))
    .addColumn("steps", "text", (c) => c.notNull().defaultTo("[]"))
    .addColumn("input_tokens", "integer")
    .addColumn("output_tokens", "integer")
    .addColumn("model", "text")
    .addColumn("credits_charged", "integer", (c) => c.notNull().defaultTo(0))
    .addColumn("auth", "text")
    .addColumn("no_reply_reason", "text")
    .addColumn("raw_mail_id", "text")
    .addColumn("rfc_message_id", "text")
    .addColumn("body_hash", "text")
    .addColumn("dedupe_key", "text")
    .addColumn("duplicates", "integer", (c) => c.notNull().defaultTo(0))
    .addColumn("hop", "integer", (c) => c.notNull().defaultTo(0))
    .addColumn("reply_status", "text", (c) => c.notNull().defaultTo("none"))
    .addColumn("reply_error", "text")
    .addColumn("created", "bigint", (c) => c.notNull())
    .addColumn("accepted_ms", "bigint", (c) => c.notNull())
    .addColumn("completed", "bigint")
    .addColumn("duration_ms", "integer");
}

function workTables(db: Kysely<unknown>): CreateTableBuilder<string, string>[] {
  return [
    db.schema
      .createTable("installation")
      .addColumn("name", "text", (c) => c.primaryKey())
      .addColumn("value", "blob", (c) => c.notNull()),
    db.schema
      .createTable("idempotency_keys")
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("route", "text", (c) => c.notNull())
      .addColumn("key", "text", (c) => c.notNull())
      .addColumn("fingerprint", "text", (c) => c.notNull())
      .addColumn("message_id", "text", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull())
      .addPrimaryKeyConstraint("idempotency_keys_pk", ["user_id", "route", "key"]),
    db.schema
      .createTable("jobs")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("payload", "text", (c) => c.notNull())
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("lane", "text")
      .addColumn("dedupe_key", "text")
      .addColumn("run_at", "bigint", (c) => c.notNull())
      .addColumn("attempts", "integer", (c) => c.notNull().defaultTo(0))
      .addColumn("failures", "integer", (c) => c.notNull().defaultTo(0))
      .addColumn("lease_until", "bigint")
      .addColumn("last_error", "text")
      .addColumn("created", "bigint", (c) => c.notNull()),
  ];
}

/** Every index is one more page to write for each mail: there is one only where a hot path or a deletion asks. */
const INDEXES: [table: string, columns: string[], unique?: "unique"][] = [
  ["api_keys", ["user_id"]],
  ["connections", ["user_id"]],
  ["inboxes", ["user_id"]],
  ["inboxes", ["default_connection_id"]],
  ["inboxes", ["local_part", "domain"], "unique"],
  ["conversations", ["user_id", "last_at", "id"]],
  ["messages", ["user_id", "id"]],
  ["messages", ["conversation_id", "id"]],
  ["messages", ["inbox_id", "sender", "created"]],
  ["messages", ["inbox_id", "dedupe_key"]],
  ["attachments", ["message_id"]],
  ["outgoing_mails", ["message_id"]],
  ["outgoing_mails", ["user_id", "id"]],
  ["outgoing_mails", ["rfc_message_id"]],
  ["reply_tokens", ["conversation_id"]],
  ["ledger", ["user_id", "period", "id"]],
  ["ledger", ["message_id", "kind"], "unique"],
  ["jobs", ["kind", "status", "run_at", "id"]],
  ["jobs", ["lane", "status", "id"]],
];

async function createIndexes(db: Kysely<unknown>): Promise<void> {
  for (const [table, columns, unique] of INDEXES) {
    const index = db.schema
      .createIndex(`${table}_${columns.join("_")}`)
      .on(table)
      .columns(columns);
    await (unique ? index.unique() : index).execute();
  }
  // Most jobs have none.
  const dedupe = db.schema.createIndex("jobs_dedupe_key").on("jobs").column("dedupe_key").unique();
  await dedupe.where(sql.ref("dedupe_key"), "is not", null).execute();
}
