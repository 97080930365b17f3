import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { wordsOfDelay } from "../mail/sending/delays.ts";
import type { BounceDetails } from "../mail/reading/machine-mail.ts";
import { type HandedMail, recordReport } from "../mail/sending/sent-state.ts";
import { isOwnMessageId, outgoingOfBounce } from "../mail/writing/own-ids.ts";
import type { BounceReport } from "../mail/reading/plain-bounce.ts";

interface Notification {
  /** The report on a mail; null if the notification has none. */
  bounce: BounceReport | null;
  /** The address that the notification came to. */
  address: string;
  /** The account of the inbox at that address; undefined for a bounce address. */
  user_id?: string | undefined;
}

/**
 * Stores what a delivery status notification says about the reply that it is about, and returns false if it is about
 * none of ours. The reply is found by the bounce address, which only this server can make. If the notification came to
 * the inbox instead, it is found by the Message-ID of the reply in it: only this server can make that too, but more
 * people have seen it. The text of a notification proves nothing.
 */
export async function noteBounce(app: App, tx: Db, notification: Notification): Promise<boolean> {
  const { bounce } = notification;
  if (bounce === null) return false;
  const found = await findMail(app, tx, notification, bounce);
  const result = found && resultOf(bounce, found.mail.completed ?? app.now());
  if (!result) return false;
  await recordReport(app, tx, found.mail, { ...result, certain: found.certain });
  return true;
}

type Report = Omit<Parameters<typeof recordReport>[3], "certain">;

/**
 * Returns what a report says of a mail that was handed over at `handed_over`. RFC 3464 §2.3.3: the action `failed` is
 * final, even with a status of class 4 after days of retries; without an action the class decides.
 */
function resultOf({ action, status, said }: BounceDetails, handed_over: number): Report | undefined {
  if (action === "failed" || (action === undefined && status?.startsWith("5.") === true))
    return {
      status: "bounced",
      // RFC 3463 §3.1: "other undefined status".
      enhanced: status ?? "5.0.0",
      said,
      response: `The recipient's server returned the mail later, with status ${status ?? "unknown"}.`,
    };
  if (action === "delayed")
    return {
      status: "deferred",
      enhanced: status,
      response: wordsOfDelay(handed_over, status),
    };
  return action === "delivered"
    ? { status: "sent", response: "The recipient's server has delivered the mail." }
    : undefined;
}

async function findMail(
  app: App,
  tx: Db,
  { address, user_id }: Notification,
  { original_message_id, in_words, named = [] }: BounceReport,
): Promise<{ mail: HandedMail; certain: boolean } | undefined> {
  const mails = tx
    .selectFrom("outgoing_mails")
    .select(["id", "user_id", "message_id", "kind", "envelope_to", "rfc_message_id", "event_id"])
    .select(["attempts", "status", "completed", "entrusted"]);
  const outgoing_id = outgoingOfBounce(app, splitAddress(address));
  if (outgoing_id !== undefined) {
    const mail = await mails.where("id", "=", outgoing_id).executeTakeFirst();
    if (!mail) return undefined;
    // A notification only in words may as well be an absence note: it must hold our mail, or a mail system must name
    // the recipient in it.
    const holds = original_message_id === mail.rfc_message_id;
    const names = original_message_id === undefined && named.includes(mail.envelope_to.toLowerCase());
    return !in_words || holds || names ? { mail, certain: true } : undefined;
  }
  if (user_id === undefined || original_message_id === undefined) return undefined;
  if (!isOwnMessageId(app, original_message_id)) return undefined;
  const mail = await mails
    .where("rfc_message_id", "=", original_message_id)
    .where("user_id", "=", user_id)
    .executeTakeFirst();
  return mail && { mail, certain: false };
}
