import { factsOf } from "../resources/messages/states.ts";
import type { App } from "../app.ts";
import { historySince } from "../resources/billing/plans.ts";
import type { Db } from "../db/database.ts";
import type { MessageRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { deleteJobOfMessage } from "../jobs/remove.ts";
import { CANCELLED_REASON } from "../resources/messages/cancelled.ts";
import { ownMessage, readRun } from "../resources/messages/messages.ts";
import type { RunView } from "../resources/messages/view.ts";
import { endMessage } from "./fail.ts";
import type { Step } from "./steps.ts";
import { notedCalls, stepsWith } from "./tool-journal.ts";

/** Only its owner reads this; a listed sender is told in a mail of its own. */
const WORDS = "It was cancelled before it was done.";

/**
 * Ends a message of the user's own that waits or is being worked on: it has failed from then on, at no cost. Its job goes in
 * the same transaction, so that either this one or the one that closes the run counts, whichever comes first. A call that a
 * tool is at is not made undone: the journal keeps that it was begun. Done a second time it changes nothing.
 */
export async function cancelMessage(app: App, user: UserRow, id: string): Promise<RunView> {
  const cancelled = await app.write(async (tx) => {
    const [message] = await ownMessage(tx, { user_id: user.id, id, since: historySince(app, user) });
    if (!message) throw new AppError("not_found", "There is no such message.");
    if (message.state === "received") return endWithJob(app, tx, message);
    if (message.reason === CANCELLED_REASON) return false;
    throw new AppError(
      "conflict",
      `This message ${factsOf(message.state).ended}, so there is nothing to cancel.`,
      {
        fix: `Its page tells what became of it (\`GET /v1/messages/${id}\`).`,
      },
    );
  });
  if (cancelled) app.worker?.cancel(id);
  return readRun(app, user, id);
}

async function endWithJob(app: App, tx: Db, message: MessageRow): Promise<boolean> {
  await deleteJobOfMessage(tx, message);
  const told = app.progress.get(message.id)?.() as Step[] | undefined;
  const noted = await notedCalls(tx, message.id);
  await endMessage(app, tx, message, {
    reason: CANCELLED_REASON,
    error: WORDS,
    ...(told === undefined ? {} : { steps: stepsWith(told, noted) }),
    is_told: message.authority !== "owner",
  });
  return true;
}
