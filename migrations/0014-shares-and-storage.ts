import { type Kysely, sql } from "kysely";

/** What jobs take of their pool besides a slot, and how much every account stores. */
export const sharesAndStorage = {
  async up(db: Kysely<unknown>): Promise<void> {
    await db.schema
      .alterTable("jobs")
      .addColumn("weight", "bigint", (c) => c.notNull().defaultTo(0))
      .execute();
    await db.schema.alterTable("jobs").addColumn("target", "text").execute();
    // Domains stood for accounts there.
    await sql`update jobs set target = substr(account, 9), account = null, account_slots = null
      where kind = 'send_mail' and account like 'mail to %'`.execute(db);
    await db.schema
      .createTable("account_storage")
      .addColumn("user_id", "text", (c) => c.primaryKey().references("users.id").onDelete("cascade"))
      .addColumn("bytes", "bigint", (c) => c.notNull())
      .addColumn("counted_at", "bigint", (c) => c.notNull())
      .execute();
    await sql`insert into account_storage (user_id, bytes, counted_at) select id, ${STORED}, 0 from users`.execute(
      db,
    );
    for (const [name, event, work] of TRIGGERS)
      await sql`create trigger ${sql.raw(name)} ${sql.raw(event)} begin ${work}; end`.execute(db);
  },
};

const text = (row: string) =>
  sql.raw(
    ["instruction", "command", "result", "steps"]
      .map((column) => `coalesce(octet_length(${row}.${column}), 0)`)
      .join(" + "),
  );

/** All that an account stores; a mail that several of its messages name is there once. */
const STORED = sql`
  coalesce((select sum(${text("m")}) from messages m where m.user_id = users.id), 0)
  + coalesce((select sum(octet_length(c.content)) from messages m join message_contents c on c.message_id = m.id
      where m.user_id = users.id), 0)
  + coalesce((select sum(a.size) from messages m join attachments a on a.message_id = m.id
      where m.user_id = users.id and a.purged_at is null), 0)
  + coalesce((select sum(r.size) from raw_mails r where r.purged_at is null
      and r.id in (select m.raw_mail_id from messages m where m.user_id = users.id)), 0)
  + coalesce((select sum(octet_length(o.raw)) from outgoing_mails o where o.user_id = users.id), 0)
  + coalesce((select sum(octet_length(x.body)) from contexts x where x.user_id = users.id), 0)`;

const add = (user: string, bytes: ReturnType<typeof sql>) =>
  sql`update account_storage set bytes = bytes + (${bytes}) where user_id = ${sql.raw(user)}`;

const ownerOf = (message: string) => `(select user_id from messages where id = ${message})`;

/** Of the mail that a message names, what it adds to its account: nothing if another of its messages names it too. */
const rawMail = (row: string) =>
  sql.raw(`coalesce((select r.size from raw_mails r where r.id = ${row}.raw_mail_id and r.purged_at is null
    and not exists (select 1 from messages m
      where m.raw_mail_id = r.id and m.user_id = ${row}.user_id and m.id <> ${row}.id)), 0)`);

/**
 * The database counts by itself, in the commit that writes: nothing that writes can forget to. What goes with its
 * message is counted before that goes, as nobody can tell afterwards whose it was.
 */
const TRIGGERS: [string, string, ReturnType<typeof sql>][] = [
  [
    "storage_of_user",
    "after insert on users",
    sql`insert into account_storage (user_id, bytes, counted_at) values (new.id, 0, 0)`,
  ],
  [
    "storage_message_insert",
    "after insert on messages",
    add("new.user_id", sql`${text("new")} + ${rawMail("new")}`),
  ],
  [
    "storage_message_update",
    "after update of instruction, command, result, steps on messages",
    add("new.user_id", sql`${text("new")} - (${text("old")})`),
  ],
  [
    "storage_message_delete",
    "before delete on messages",
    add(
      "old.user_id",
      sql`- (${text("old")} + ${rawMail("old")}
        + coalesce((select octet_length(content) from message_contents where message_id = old.id), 0)
        + coalesce((select sum(size) from attachments where message_id = old.id and purged_at is null), 0))`,
    ),
  ],
  [
    "storage_mail_purge",
    "after update of purged_at on raw_mails when old.purged_at is null and new.purged_at is not null",
    sql`update account_storage set bytes = bytes - old.size
      where user_id in (select user_id from messages where raw_mail_id = old.id)`,
  ],
  [
    "storage_content_insert",
    "after insert on message_contents when new.content is not null",
    add(ownerOf("new.message_id"), sql`octet_length(new.content)`),
  ],
  [
    "storage_content_update",
    "after update of content on message_contents",
    add(
      ownerOf("new.message_id"),
      sql`coalesce(octet_length(new.content), 0) - coalesce(octet_length(old.content), 0)`,
    ),
  ],
  [
    "storage_file_insert",
    "after insert on attachments when new.purged_at is null",
    add(ownerOf("new.message_id"), sql`new.size`),
  ],
  [
    "storage_file_purge",
    "after update of purged_at on attachments when old.purged_at is null and new.purged_at is not null",
    add(ownerOf("new.message_id"), sql`- old.size`),
  ],
  [
    "storage_outgoing_insert",
    "after insert on outgoing_mails when new.raw is not null",
    add("new.user_id", sql`octet_length(new.raw)`),
  ],
  [
    "storage_outgoing_update",
    "after update of raw on outgoing_mails",
    add("new.user_id", sql`coalesce(octet_length(new.raw), 0) - coalesce(octet_length(old.raw), 0)`),
  ],
  [
    "storage_outgoing_delete",
    "after delete on outgoing_mails when old.raw is not null",
    add("old.user_id", sql`- octet_length(old.raw)`),
  ],
  ["storage_context_insert", "after insert on contexts", add("new.user_id", sql`octet_length(new.body)`)],
  [
    "storage_context_update",
    "after update of body on contexts",
    add("new.user_id", sql`octet_length(new.body) - octet_length(old.body)`),
  ],
  ["storage_context_delete", "after delete on contexts", add("old.user_id", sql`- octet_length(old.body)`)],
];
