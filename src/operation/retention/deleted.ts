import type { App } from "../../app.ts";
import { prepared } from "../../db/prepared.ts";
import { eraseLater } from "../../jobs/erase.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { deleteJobsOfNothing } from "../../jobs/remove.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { beginShift, goThrough, takeTurns } from "../../jobs/shift.ts";
import { ERASED_AFTER_SECONDS } from "../../resources/messages/delete.ts";
import { keyedMessages, type OldMessage } from "./history.ts";
import { eraseMessages, MESSAGES_AT_ONCE } from "./messages.ts";

/** When to look again at messages that wait for an answer or a webhook. */
const AGAIN_SECONDS = 60;

/**
 * Erases messages that their owner deleted, as retention does: the keys that recognize a duplicate mail stay, and so
 * does the ledger. Messages of which others are still to be told wait.
 */
export async function eraseDeletedNow(
  app: App,
  job: Job<"erase_messages">,
  signal: AbortSignal,
): Promise<void> {
  const { user_id } = job.payload;
  const until = app.calmNow() - ERASED_AFTER_SECONDS;
  let erased = 0;
  const find = { user_id, until, before: app.now() + 1 };
  const step = goThrough(
    MESSAGES_AT_ONCE,
    (tx, last?: OldMessage) => deletedOf(tx, { ...find, after: last?.id ?? "" }),
    async (tx, ended, ranges) => {
      ranges.push(...(await eraseMessages(app, tx, ended)));
      erased += ended.length;
    },
  );
  const shift = beginShift(app, signal);
  await takeTurns(shift, step);
  await takeTurns(shift, deleteJobsOfNothing);
  await writeOutcome(app, signal, async (tx) => {
    if (erased > 0) await eraseLater(app, tx, []);
    const [left] = await anyDeleted(tx, { user_id });
    if (!left) return finishJob(tx, job);
    const due = (left.deleted_at ?? 0) + ERASED_AFTER_SECONDS;
    return deferJob(tx, job, due > app.now() ? due : app.after(AGAIN_SECONDS));
  });
}

const deletedOf = prepared((db, key: { user_id: string; until: number; before: number; after: string }) =>
  keyedMessages(db, key.before)
    .where("messages.user_id", "=", key.user_id)
    .where("messages.deleted_at", "is not", null)
    .where("messages.deleted_at", "<=", key.until)
    .where("messages.id", ">", key.after)
    .orderBy("messages.id")
    .limit(MESSAGES_AT_ONCE),
);

/** Selects the message that was deleted first. */
const anyDeleted = prepared((db, key: { user_id: string }) =>
  db
    .selectFrom("messages")
    .select("deleted_at")
    .where("user_id", "=", key.user_id)
    .where("deleted_at", "is not", null)
    .orderBy("deleted_at")
    .limit(1),
);
