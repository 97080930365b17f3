import { type CreateTableBuilder, type Kysely, sql } from "kysely";

export const accountsAndResources = {
  async up(db: Kysely<unknown>): Promise<void> {
    for (const table of [...accountTables(db), ...resourceTables(db)]) await table.execute();
    await addColumns(db);
    await createIndexes(db);
  },
};

function accountTables(db: Kysely<unknown>): CreateTableBuilder<string, string>[] {
  return [
    db.schema
      .createTable("sessions")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("expires", "bigint", (c) => c.notNull())
      .addColumn("code_login_at", "bigint")
      .addColumn("client", "text", (c) => c.notNull())
      .addColumn("user_agent", "text", (c) => c.notNull()),
    db.schema
      .createTable("login_codes")
      .addColumn("user_id", "text", (c) => c.primaryKey().references("users.id").onDelete("cascade"))
      .addColumn("code_hmac", "text", (c) => c.notNull())
      .addColumn("attempts", "integer", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("pending_passwords")
      .addColumn("user_id", "text", (c) => c.primaryKey().references("users.id").onDelete("cascade"))
      .addColumn("password_hash", "text", (c) => c.notNull())
      .addColumn("name", "text")
      .addColumn("token_hash", "text", (c) => c.notNull())
      .addColumn("client", "text", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("security_events")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("client", "text")
      .addColumn("created", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("rate_limits")
      .addColumn("key", "text", (c) => c.primaryKey())
      .addColumn("full_at", "bigint", (c) => c.notNull()),
  ];
}

function resourceTables(db: Kysely<unknown>): CreateTableBuilder<string, string>[] {
  return [
    db.schema
      .createTable("contexts")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("title", "text", (c) => c.notNull())
      .addColumn("body", "text", (c) => c.notNull())
      .addColumn("kind", "text", (c) => c.notNull())
      .addColumn("slug", "text", (c) => c.notNull())
      .addColumn("enabled", "integer", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull())
      .addColumn("updated", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("custom_domains")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("user_id", "text", (c) => c.notNull().references("users.id").onDelete("cascade"))
      .addColumn("domain", "text", (c) => c.notNull())
      .addColumn("status", "text", (c) => c.notNull())
      .addColumn("ownership_token", "text", (c) => c.notNull())
      .addColumn("dkim_selector", "text", (c) => c.notNull())
      .addColumn("dkim_public", "text", (c) => c.notNull())
      .addColumn("dkim_sealed", "blob", (c) => c.notNull())
      .addColumn("findings", "text", (c) => c.notNull().defaultTo("{}"))
      .addColumn("error", "text")
      .addColumn("misses", "integer", (c) => c.notNull().defaultTo(0))
      .addColumn("verified_at", "bigint")
      .addColumn("last_checked_at", "bigint")
      .addColumn("created", "bigint", (c) => c.notNull()),
    db.schema
      .createTable("contact_submissions")
      .addColumn("id", "text", (c) => c.primaryKey())
      .addColumn("name", "text", (c) => c.notNull())
      .addColumn("email", "text", (c) => c.notNull())
      .addColumn("subject", "text")
      .addColumn("topic", "text")
      .addColumn("message", "text", (c) => c.notNull())
      .addColumn("flag", "text")
      .addColumn("client", "text", (c) => c.notNull())
      .addColumn("created", "bigint", (c) => c.notNull()),
  ];
}

const COLUMNS: [
  table: string,
  column: string,
  type: "text" | "integer" | "bigint",
  initial?: string | number,
][] = [
  ["users", "password_hash", "text"],
  ["users", "timezone", "text", "UTC"],
  ["users", "reply_footer", "integer", 1],
  ["api_keys", "last_used_ip", "text"],
  ["connections", "auth", "text", "key"],
  ["connections", "expires_at", "bigint"],
  ["connections", "config", "text"],
  ["inboxes", "context_ids", "text"],
  ["inboxes", "retention_days", "integer"],
  ["messages", "retry_of", "text"],
  ["messages", "tags", "text", "[]"],
  ["jobs", "account", "text"],
  ["jobs", "account_slots", "integer"],
];

async function addColumns(db: Kysely<unknown>): Promise<void> {
  for (const [table, column, type, initial] of COLUMNS)
    await db.schema
      .alterTable(table)
      .addColumn(column, type, (c) => (initial === undefined ? c : c.notNull().defaultTo(initial)))
      .execute();
  await db.schema
    .alterTable("inboxes")
    .addColumn("domain_id", "text", (c) => c.references("custom_domains.id").onDelete("set null"))
    .execute();
  await db.schema
    .alterTable("connections")
    .addColumn("fallback_connection_id", "text", (c) => c.references("connections.id").onDelete("set null"))
    .execute();
}

const INDEXES: [table: string, columns: string[], unique?: "unique"][] = [
  ["sessions", ["user_id"]],
  ["sessions", ["expires"]],
  ["security_events", ["user_id", "id"]],
  ["contexts", ["user_id", "slug"], "unique"],
  ["custom_domains", ["user_id", "domain"], "unique"],
  ["custom_domains", ["domain"]],
  ["custom_domains", ["status", "last_checked_at"]],
  ["inboxes", ["domain_id"]],
  ["connections", ["fallback_connection_id"]],
  ["messages", ["inbox_id", "id"]],
];

async function createIndexes(db: Kysely<unknown>): Promise<void> {
  for (const [table, columns, unique] of INDEXES) {
    const index = db.schema
      .createIndex(`${table}_${columns.join("_")}`)
      .on(table)
      .columns(columns);
    await (unique ? index.unique() : index).execute();
  }
  // A domain is in use by one account only, whatever becomes of the code that looks first.
  const active = db.schema
    .createIndex("custom_domains_active")
    .on("custom_domains")
    .column("domain")
    .unique();
  await active.where(sql.ref("status"), "=", "active").execute();
  // Nearly every message ends as done; only the others are ever looked for among all.
  const unfinished = db.schema.createIndex("messages_user_id_state_id").on("messages");
  await unfinished.columns(["user_id", "state", "id"]).where(sql.ref("state"), "<>", "done").execute();
  const retries = db.schema.createIndex("messages_retry_of").on("messages").column("retry_of");
  await retries.where(sql.ref("retry_of"), "is not", null).execute();
  // Whether anybody still names a mail that is to be erased.
  const raw = db.schema.createIndex("messages_raw_mail_id").on("messages").column("raw_mail_id");
  await raw.where(sql.ref("raw_mail_id"), "is not", null).execute();
}
