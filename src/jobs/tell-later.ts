import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { laneOfNotices, messageKey } from "../db/job-keys.ts";
import { prepared } from "../db/prepared.ts";
import type { OwnerNoticeRow } from "../db/schema.ts";
import { UNENDED } from "../db/unfinished.ts";
import { DAY_MS, dayAt } from "../lib/durations.ts";
import type { JobPayloads } from "./kinds.ts";
import { enqueue } from "./queue.ts";

type Notice = JobPayloads["mail_notice"];

/**
 * Enqueues a mail that tells the owner why mail is not worked on; at most one of each kind goes a day (UTC). All that waits for one is in
 * a lane of its own: the first that may write it tells of all the others too.
 */
export async function tellOwnerLater(app: App, tx: Db, notice: Notice): Promise<void> {
  const lane = laneOfNotices(notice);
  const key = keyOf(notice, lane);
  await enqueue(app, tx, {
    kind: "mail_notice",
    payload: notice,
    lane,
    ...(key !== null && { dedupe_key: key }),
    run_at: (await mayTellFrom(app, tx, notice)) ?? app.now(),
  });
}

/** A letter about a message keeps that until it has gone, one that counts is asked for once, and what found no room is not the same twice. */
function keyOf({ message_id, kind, refused }: Notice, lane: string): string | null {
  if (message_id !== undefined) return messageKey(message_id, kind);
  return refused === undefined ? lane : null;
}

type Letter = Pick<OwnerNoticeRow, "user_id" | "kind">;

/** From when on a letter of a kind may go to its owner: tomorrow (UTC) where one has gone today; null for now. */
export async function mayTellFrom(app: App, db: Db, letter: Letter): Promise<number | null> {
  const today = dayAt(app.now());
  return (await isTold(db, letter, today)) ? (Date.parse(today) + DAY_MS) / 1_000 : null;
}

/** Puts off what waits in a lane of letters. */
export const putOffLane = prepared((db, { lane, run_at }: { lane: string; run_at: number }) =>
  db
    .updateTable("jobs")
    .set({ run_at })
    .where("lane", "=", lane)
    .where(UNENDED)
    .where("status", "=", "pending")
    .where("run_at", "<", run_at),
);

/** Notes that a letter of a kind goes to its owner today, or the one with the mark of what is told once. */
export async function noteTold(
  app: App,
  tx: Db,
  { user_id, kind, once: day = dayAt(app.now()) }: Letter & { once?: string },
): Promise<void> {
  await tx
    .insertInto("owner_notices")
    .values({ user_id, kind, day })
    .onConflict((conflict) => conflict.columns(["user_id", "kind", "day"]).doNothing())
    .execute();
}

/**
 * Enqueues a mail that tells the owner of something `once`, whatever else is told on the same day. Returns false where it has been told:
 * its mark is set when the letter is queued, as there may be nothing left to tell by then.
 */
export async function tellOwnerOnce(app: App, tx: Db, notice: Notice & { once: string }): Promise<boolean> {
  if (await isTold(tx, notice, notice.once)) return false;
  const dedupe_key = `${notice.kind} ${notice.user_id} ${notice.once}`;
  await enqueue(app, tx, { kind: "mail_notice", payload: notice, dedupe_key });
  return true;
}

/** Whether a letter of a kind has gone to its owner on a day, or with the mark of what is told once. */
export async function isTold(db: Db, { user_id, kind }: Letter, day: string): Promise<boolean> {
  const told = await db
    .selectFrom("owner_notices")
    .select("day")
    .where("user_id", "=", user_id)
    .where("kind", "=", kind)
    .where("day", "=", day)
    .executeTakeFirst();
  return told !== undefined;
}

/** Enqueues a mail that tells a sender that their mail was not worked on; the job decides whether they may be told. */
export async function tellSenderLater(app: App, tx: Db, message_id: string): Promise<void> {
  const dedupe_key = messageKey(message_id, "tell_failure");
  await enqueue(app, tx, { kind: "tell_failure", payload: { message_id }, dedupe_key });
}
