import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { messageKey } from "../db/job-keys.ts";
import { dayAt } from "../lib/durations.ts";
import type { JobPayloads } from "./kinds.ts";
import { enqueue } from "./queue.ts";

/** Enqueues a mail that tells the owner why mail is not worked on; at most one of each kind a day (UTC). */
export async function tellOwnerLater(app: App, tx: Db, notice: JobPayloads["mail_notice"]): Promise<void> {
  const { user_id, kind, message_id } = notice;
  const day = dayAt(app.nowMs() / 1_000);
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto("owner_notices")
    .values({ user_id, kind, day })
    .onConflict((conflict) => conflict.columns(["user_id", "kind", "day"]).doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows === 0n) return;
  const about = message_id === undefined ? {} : { dedupe_key: messageKey(message_id, kind) };
  await enqueue(app, tx, { kind: "mail_notice", payload: notice, ...about });
}

/** Enqueues a mail that tells a sender that their mail was not worked on; the job decides whether they may be told. */
export async function tellSenderLater(app: App, tx: Db, message_id: string): Promise<void> {
  const dedupe_key = messageKey(message_id, "tell_failure");
  await enqueue(app, tx, { kind: "tell_failure", payload: { message_id }, dedupe_key });
}
