import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { outgoingOfBounce, splitAddress } from "../inboxes/addresses.ts";
import { type BounceDetails, bounceDetails } from "../mail/machine-mail.ts";
import { record } from "../mail/outgoing.ts";

/**
 * Marks the reply that a delivery status notification is about as bounced. It is found by the bounce address
 * alone, which only we can make: the text of a notification proves nothing.
 */
export async function noteBounce(app: App, tx: Db, bounce: { raw: Buffer; address: string }): Promise<void> {
  const outgoing_id = outgoingOfBounce(app, splitAddress(bounce.address));
  if (outgoing_id === undefined) return;
  const details = bounceDetails(bounce.raw.toString("latin1"));
  if (!hasFailed(details)) return;
  const mail = await tx
    .selectFrom("outgoing_mails")
    .select(["id", "message_id", "event_id", "attempts"])
    .where("id", "=", outgoing_id)
    .executeTakeFirst();
  if (!mail) return;
  await record(app, tx, mail, {
    status: "bounced",
    response: `The recipient's server returned the mail later, with status ${details.status ?? "unknown"}.`,
  });
}

/** RFC 3464 §2.3.3: `failed` is final, even of class 4 after days of retries; without an action the class tells. */
function hasFailed({ action, status = "" }: BounceDetails): boolean {
  return action === undefined ? status.startsWith("5.") : action === "failed";
}
