import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { enqueue } from "../../jobs/queue.ts";
import { hasWaiting } from "../../jobs/waits.ts";

/** Throws `inbox_paused` for a call to a paused inbox, because its caller waits for the result. */
export function refusePaused({ paused }: Pick<InboxRow, "paused">): void {
  if (paused === null) return;
  throw new AppError("inbox_paused", "This inbox is paused by its owner, so it begins nothing now.", {
    fix: 'Have it go on, on its page under Settings (`PATCH /inboxes/{inbox_id}` with `{"paused": null}`), or use another inbox.',
  });
}

/**
 * Has the work go on that waited for an inbox; called in the transaction that ends its pause or deletes it. A job that
 * has begun has no such key any more, as it may be past what another is to have go on.
 */
export async function resumeLater(app: App, tx: Db, inbox_id: string): Promise<void> {
  const dedupe_key = `resume ${inbox_id}`;
  await enqueue(app, tx, { kind: "resume_inbox", payload: { inbox_id }, dedupe_key });
}

/**
 * Has what waits in an inbox by a rule looked at soon: the rule may be another one, or gone, as the inbox may be. As much
 * as one likes may wait, so that a job does it.
 */
export async function lookAtWaitingLater(app: App, tx: Db, inbox_id: string): Promise<void> {
  if (await hasWaiting(tx, inbox_id)) await resumeLater(app, tx, inbox_id);
}
