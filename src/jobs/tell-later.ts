import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { messageKey, noticeKey } from "../db/job-keys.ts";
import { DAY_MS, dayAt } from "../lib/durations.ts";
import type { JobPayloads } from "./kinds.ts";
import { enqueue } from "./queue.ts";

type Notice = JobPayloads["mail_notice"];

/**
 * Enqueues a mail that tells the owner why mail is not worked on; at most one of each kind a day (UTC). Where that of today has been enqueued, it
 * goes tomorrow, and is about what came after that: nothing else would tell of it.
 */
export async function tellOwnerLater(app: App, tx: Db, notice: Notice): Promise<void> {
  const today = dayAt(app.nowMs() / 1_000);
  if (await takeDay(tx, notice, today)) return enqueueNotice(app, tx, { ...notice, day: today });
  const from_ms = Date.parse(today) + DAY_MS;
  const day = dayAt(from_ms / 1_000);
  if (await takeDay(tx, notice, day))
    await enqueueNotice(app, tx, { ...notice, day }, { run_at: from_ms / 1_000 });
}

/** Enqueues such a mail unless that of its kind and day has been: no other one comes after it. */
export async function tellOwnerOnce(app: App, tx: Db, notice: Notice & { day: string }): Promise<void> {
  if (await takeDay(tx, notice, notice.day)) await enqueueNotice(app, tx, notice);
}

/** Takes the one letter of a kind that goes on a day. Returns false where somebody has. */
async function takeDay(
  tx: Db,
  { user_id, kind }: Pick<Notice, "user_id" | "kind">,
  day: string,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto("owner_notices")
    .values({ user_id, kind, day })
    .onConflict((conflict) => conflict.columns(["user_id", "kind", "day"]).doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows !== 0n;
}

/** Enqueues a letter. One about a message keeps that until it has gone. */
async function enqueueNotice(
  app: App,
  tx: Db,
  notice: Notice & { day: string },
  when: { run_at?: number } = {},
): Promise<void> {
  const { message_id, kind } = notice;
  const dedupe_key = message_id === undefined ? noticeKey(notice) : messageKey(message_id, kind);
  await enqueue(app, tx, { kind: "mail_notice", payload: notice, dedupe_key, ...when });
}

/** Enqueues a mail that tells a sender that their mail was not worked on; the job decides whether they may be told. */
export async function tellSenderLater(app: App, tx: Db, message_id: string): Promise<void> {
  const dedupe_key = messageKey(message_id, "tell_failure");
  await enqueue(app, tx, { kind: "tell_failure", payload: { message_id }, dedupe_key });
}
