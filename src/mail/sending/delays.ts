import type { App } from "../../app.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import { DEFERRED } from "../../db/unfinished.ts";
import { settleForwardLater } from "./forwards.ts";
import { dayAt, DAY_SECONDS } from "../../lib/durations.ts";

/**
 * How long a delay is waited for: servers retry for four to five days and then return the mail, which takes time as
 * well (RFC 5321 §4.5.4.1).
 */
const PATIENCE_SECONDS = 6 * DAY_SECONDS;
const AT_ONCE = 20;

const QUIET_END =
  "A server on the way to the recipient has the mail and needed longer for it. In six days nothing more was heard, and servers return after five what they could not deliver: the mail has most likely arrived. If the recipient misses it, reach them in another way.";

/**
 * Returns a sentence on what a delay report means for a mail handed over at a time (unix seconds). `status` is from RFC
 * 3463.
 */
export function wordsOfDelay(handed_over: number, status: string | undefined): string {
  const last_day = dayAt(endOf(handed_over));
  return `A server on the way to the recipient has the mail, could not hand it on yet (status ${status ?? "unknown"}) and goes on trying. If it does not come back by ${last_day}, it counts as sent. Here is nothing to be done; if it is urgent, reach the recipient in another way.`;
}

/** Returns whether a server that got a mail at that time may still be trying. */
export function mayBeDelayed(app: App, handed_over: number): boolean {
  return endOf(handed_over) > app.calmNow();
}

/** Ends some delays without further reports. Returns false when there are no more of them. */
export async function endDelays(app: App, tx: Db): Promise<boolean> {
  const mails = await tx
    .selectFrom("outgoing_mails")
    .select(["id", "user_id", "message_id", "kind"])
    .where(DEFERRED)
    .where("completed", "<=", app.calmNow() - PATIENCE_SECONDS)
    .limit(AT_ONCE)
    .execute();
  if (mails.length === 0) return false;
  const ids = mails.map(({ id }) => id);
  const ended = { status: "sent", response: QUIET_END } as const;
  await tx.updateTable("outgoing_mails").set(ended).where("id", "in", ids).execute();
  const { forwards = [], others = [] } = Object.groupBy(mails, ({ kind }) =>
    kind === "forward" ? "forwards" : "others",
  );
  for (const mail of forwards) await settleForwardLater(app, tx, mail);
  const messages = others.flatMap(({ message_id }) => message_id ?? []);
  await tx
    .updateTable("messages")
    .set({ reply_status: "sent", reply_error: null })
    .where("id", "in", messages)
    .where("reply_status", "=", "deferred")
    .execute();
  for (const { user_id, message_id } of others)
    if (message_id !== null) afterCommit(tx, () => app.changes.tell(user_id, message_id));
  return mails.length === AT_ONCE;
}

function endOf(handed_over: number): number {
  return handed_over + PATIENCE_SECONDS;
}
