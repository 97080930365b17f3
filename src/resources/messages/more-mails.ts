import { type LeftOutReason, manyWords, type RefusalReason } from "../../reasons.ts";
import type { App } from "../../app.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import { insertRow, prepared } from "../../db/prepared.ts";
import type { InboxRow, MessageRow } from "../../db/schema.ts";
import { blankMessage } from "./blank-message.ts";
import { recordState } from "./events.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/** Mails that are only counted, not listed: their state and the reason. */
export interface MoreMails {
  inbox: InboxRow;
  state: "rejected" | "skipped";
  reason: RefusalReason | LeftOutReason;
}

/**
 * Adds a mail to the row for all unlisted mails of this hour and reason. That row has no sender and no subject, since
 * there may be many; `mails` is their number.
 */
export async function countMore(app: App, tx: Db, more: MoreMails): Promise<void> {
  const { inbox, state, reason } = more;
  const hour = Math.floor(app.now() / HOUR_SECONDS);
  const key = { inbox_id: inbox.id, dedupe_key: `more ${state} ${reason} ${hour}` };
  const [known] = await rowOf(tx, key);
  const mails = (known?.mails ?? 0) + 1;
  const told = { mails, error: sentenceOf(more, mails, hour), completed: app.now() };
  if (known) {
    await update(tx, { id: known.id, ...told });
    afterCommit(tx, () => app.changes.tell(inbox.user_id, known.id));
    return;
  }
  const row: MessageRow = { ...blankMessage(app, inbox), ...key, ...told, state, reason, duration_ms: 0 };
  await insertRow(tx, "messages", row);
  await recordState(app, tx, row);
}

const rowOf = prepared((db, key: { inbox_id: string; dedupe_key: string }) =>
  db
    .selectFrom("messages")
    .select(["id", "mails"])
    .where("inbox_id", "=", key.inbox_id)
    .where("dedupe_key", "=", key.dedupe_key),
);

const update = prepared((db, row: Pick<MessageRow, "id" | "mails" | "error" | "completed">) =>
  db
    .updateTable("messages")
    .set({ mails: row.mails, error: row.error, completed: row.completed })
    .where("id", "=", row.id),
);

function sentenceOf({ state, reason }: MoreMails, mails: number, hour: number): string {
  const clock = new Date(hour * HOUR_SECONDS * 1_000)
    .toISOString()
    .slice("YYYY-MM-DDT".length, -":00.000Z".length);
  const since = `in the hour from ${clock} UTC`;
  const many = mails === 1 ? "1 mail" : `${mails} mails`;
  const were = mails === 1 ? "was" : "were";
  if (reason === "duplicate")
    return `${many} that had come before ${were} not worked on again ${since}; what became of the first has been deleted.`;
  const done = state === "rejected" ? "refused" : "left out";
  return `${many} more, not listed one by one, ${were} ${done} ${since}: ${manyWords(reason)}.`;
}
