import { sql } from "kysely";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { planLimits } from "./plans.ts";

const MB = 1_048_576;

/** What an account stores and may store, in bytes; `limit_bytes` is null without a limit. */
export interface Storage {
  bytes: number;
  limit_bytes: number | null;
}

/**
 * The bytes of an account: its mails as they came in and were sent, the files of its messages, what its calls brought
 * along, the words of its messages (instruction, answer and steps) and its contexts. The database counts them itself.
 */
export async function storageOf(app: App, db: Db, user: Pick<UserRow, "id" | "plan">): Promise<Storage> {
  const [row] = await bytesOf(db, { user_id: user.id });
  const { storage_mb } = planLimits(app.config, user.plan);
  return { bytes: row?.bytes ?? 0, limit_bytes: storage_mb === 0 ? null : storage_mb * MB };
}

/** Whether an account has no room for `adding` bytes more. */
export async function isFull(app: App, db: Db, user: UserRow, adding: number): Promise<boolean> {
  const { bytes, limit_bytes } = await storageOf(app, db, user);
  return limit_bytes !== null && bytes + adding > limit_bytes;
}

/** Throws `storage_full` when an account has no room for `adding` bytes more. */
export async function refuseFull(app: App, db: Db, user: UserRow, adding: number): Promise<void> {
  const { bytes, limit_bytes } = await storageOf(app, db, user);
  if (limit_bytes === null || bytes + adding <= limit_bytes) return;
  throw new AppError(
    "storage_full",
    `Your plan stores ${inMb(limit_bytes)}, of which ${inMb(bytes)} are used, so there is no room for the ${inMb(adding)} of this.`,
    { fix: `${STORAGE_MEND}.`, members: { limit: limit_bytes, current: bytes } },
  );
}

export const STORAGE_MEND =
  "Have your inboxes keep messages for fewer days (retention_days of PATCH /inboxes/{inbox_id}; what is older goes within the hour), delete contexts, or ask the operator for a larger plan";

/** Counts what an account stores anew. It is right already, unless somebody changed the database by hand. */
export async function recountStorage(app: App, tx: Db, user_id: string): Promise<void> {
  await recount(tx, { user_id, now: app.now() });
}

/** The account that was not counted anew for the longest time. */
export async function longestUncounted(db: Db): Promise<string | undefined> {
  const rows = db.selectFrom("account_storage").select("user_id").orderBy("counted_at").limit(1);
  return (await rows.executeTakeFirst())?.user_id;
}

/** "3.2 MB", "1,000 MB". */
export function inMb(bytes: number): string {
  const digits = { maximumFractionDigits: bytes < 10 * MB ? 1 : 0 };
  return `${(Math.ceil((bytes * 10) / MB) / 10).toLocaleString("en-US", digits)} MB`;
}

const bytesOf = prepared((db, key: { user_id: string }) =>
  db.selectFrom("account_storage").select("bytes").where("user_id", "=", key.user_id),
);

const recount = prepared((db, { user_id, now }: { user_id: string; now: number }) =>
  db
    .updateTable("account_storage")
    .set({ bytes: trueSum(), counted_at: now })
    .where("user_id", "=", user_id),
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
