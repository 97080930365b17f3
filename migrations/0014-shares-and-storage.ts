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
