import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { ApprovalRow, InboxRow, MessageRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import { resetsAt } from "../resources/billing/ledger.ts";
import { refuseFull } from "../resources/billing/storage.ts";
import { blankMessage } from "../resources/messages/blank-message.ts";
import { CALL_LIMITED, insertAndReserve } from "./credit.ts";
import { enqueueRun } from "./enqueue-run.ts";

/** What the owner's button says, as the instruction of the message that it makes. */
export const BUTTON = "yes";

/**
 * Stores the message that makes a call to which the owner has consented on its page, with a credit reserved and a job of its own.
 * It belongs to the conversation in which the call was wanted, and what comes of it is mailed to the owner.
 */
export async function acceptConsent(
  app: App,
  tx: Db,
  {
    user,
    inbox,
    origin,
    approval,
  }: { user: UserRow; inbox: InboxRow; origin: MessageRow; approval: ApprovalRow },
): Promise<MessageRow> {
  await refuseFull(app, tx, user, Buffer.byteLength(approval.arguments));
  const row: MessageRow = {
    ...blankMessage(app, inbox),
    source: "api",
    authority: "owner",
    sender: user.email,
    subject: origin.subject,
    instruction: BUTTON,
    conversation_id: origin.conversation_id,
    approval_id: approval.id,
  };
  const owes = await insertAndReserve(app, tx, row);
  if (row.state === "limited") {
    const until = await resetsAt(app, tx, user);
    throw new AppError("rate_limited", CALL_LIMITED, {
      fix: "The request waits as it did: allow it once there are credits again.",
      retry_after_seconds: Math.max(1, until - app.now()),
    });
  }
  await enqueueRun(app, tx, { row, user, claimed: false, bytes: 0, owes });
  return row;
}
