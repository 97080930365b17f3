import { sql } from "kysely";
import type { Db } from "./group-commit.ts";
import { prepared } from "./prepared.ts";

/** Counts what an account stores anew. It is right already, unless somebody changed the database by hand. */
export async function recountStorage(tx: Db, counted: { user_id: string; now: number }): Promise<void> {
  await recount(tx, counted);
}

/** The account that was not counted anew for the longest time. */
export async function longestUncounted(db: Db): Promise<string | undefined> {
  const rows = db.selectFrom("account_storage").select("user_id").orderBy("counted_at").limit(1);
  return (await rows.executeTakeFirst())?.user_id;
}

/** What an account stores, in bytes. The database counts it by itself: see `storage-triggers.ts`. */
export const storedBytes = prepared((db, key: { user_id: string }) =>
  db.selectFrom("account_storage").select("bytes").where("user_id", "=", key.user_id),
);

const recount = prepared((db, { user_id, now }: { user_id: string; now: number }) =>
  db.updateTable("account_storage").set({ bytes: trueSum(), counted_at: now }).where("user_id", "=", user_id),
);

/** The same sum as the triggers keep. */
function trueSum() {
  return sql<number>`
    coalesce((select sum(coalesce(octet_length(m.instruction), 0) + coalesce(octet_length(m.command), 0)
        + coalesce(octet_length(m.result), 0) + coalesce(octet_length(m.steps), 0))
      from messages m where m.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(c.content)) from messages m join message_contents c on c.message_id = m.id
      where m.user_id = account_storage.user_id), 0)
    + coalesce((select sum(a.size) from messages m join attachments a on a.message_id = m.id
      where m.user_id = account_storage.user_id and a.purged_at is null), 0)
    + coalesce((select sum(r.size) from raw_mails r where r.purged_at is null
      and r.id in (select m.raw_mail_id from messages m where m.user_id = account_storage.user_id)), 0)
    + coalesce((select sum(octet_length(o.raw)) from outgoing_mails o where o.user_id = account_storage.user_id), 0)
    + coalesce((select sum(octet_length(x.body)) from contexts x where x.user_id = account_storage.user_id), 0)`;
}
