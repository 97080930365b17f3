import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { InboxRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { enqueue } from "../../jobs/queue.ts";

/** Throws `inbox_paused` for a call to a paused inbox, because its caller waits for the result. */
export function refusePaused({ paused }: Pick<InboxRow, "paused">): void {
  if (paused === null) return;
  throw new AppError("inbox_paused", "This inbox is paused by its owner, so it begins nothing now.", {
    fix: 'Have it go on, on its page or with PATCH /inboxes/{inbox_id} and {"paused": null}, or name another inbox.',
  });
}

/** Has the work go on that waited for an inbox; called in the transaction that ends its pause or deletes it. */
export async function resumeLater(app: App, tx: Db, inbox_id: string): Promise<void> {
  await enqueue(app, tx, { kind: "resume_inbox", payload: { inbox_id } });
}
