import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { takeTurn } from "../db/rate-limits.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { tellSenderLater } from "../jobs/tell-later.ts";
import { DAY_SECONDS } from "../lib/durations.ts";
import { relayAt } from "../mail/reading/front-relay.ts";
import { isPrivateAddress } from "../net/networks.ts";
import { refusalFor, type RefusalReason } from "../reasons.ts";
import { countMore } from "../resources/messages/more-mails.ts";
import { logRefusedMail } from "./accept.ts";
import type { Delivery, Examined, Reception } from "./decide.ts";
import { proofOf, ROWS, storedChecks } from "./left-out.ts";

export type Refusal = Pick<Reception, "code" | "enhanced" | "text"> & {
  reason: RefusalReason;
  /** What the owner of the inbox reads of the refusal, if that is more than the sender does. */
  shown?: string;
  subject?: string;
  rfc_message_id?: string | null;
  sender?: string;
  /** What was found out about the sender, if the mail was examined that far. */
  identity?: Examined["identity"];
};

/** How many refusals one sender is mailed of. */
const REFUSALS_TOLD = { limit: 20, window_seconds: DAY_SECONDS };

/** Makes a refusal visible in the activity of an inbox: as a row, or in the count of those that get none. */
export async function logRefusal(
  app: App,
  tx: Db,
  { inbox, refusal }: { inbox: InboxRow; refusal: Refusal },
): Promise<MessageRow | undefined> {
  const { identity, reason } = refusal;
  const turn = { key: `refused:${inbox.id}:${proofOf(identity)}`, rule: ROWS };
  if (!takeTurn(app, tx, turn).ok) {
    await countMore(app, tx, { inbox, state: "rejected", reason });
    return undefined;
  }
  return logRefusedMail(app, tx, {
    inbox,
    state: "rejected",
    reason: refusal.reason,
    error: refusal.shown ?? refusal.text,
    authority: identity?.authenticated === true ? "stranger" : "unauthenticated",
    sender: refusal.sender ?? null,
    subject: refusal.subject ?? null,
    rfc_message_id: refusal.rfc_message_id ?? null,
    auth: identity ? storedChecks(identity) : null,
  });
}

/**
 * Has its sender told for which inboxes a mail was not taken, as the one answer of SMTP says that it was. `refused`: the
 * messages that show it. Nobody else than
 * a proven sender is written to, and no program.
 */
export async function tellOfRefusals(
  app: App,
  tx: Db,
  { delivery, mail, refused }: { delivery: Delivery; mail: Examined; refused: string[] },
): Promise<void> {
  if (delivery.answered_each || !mail.identity.authenticated || mail.kind.kind !== "person") return;
  for (const id of refused) {
    if (takeTurn(app, tx, { key: `refusal-told:${mail.from_address}`, rule: REFUSALS_TOLD }).ok)
      await tellSenderLater(app, tx, id);
  }
}

const UNPROVEN = new Set<RefusalReason>(["auth_failed", "sender_unauthenticated"]);

/** Returns the refusal of a mail because of its sender, in words for them and for the owner of the inbox. */
export function refusalOfSender(
  app: App,
  delivery: Delivery,
  { reason, shown }: Pick<Refusal, "reason" | "shown">,
): Refusal {
  const { text } = refusalFor(reason);
  const hint = UNPROVEN.has(reason) && comesFromNear(app, delivery) ? ` ${OWN_MACHINE}` : "";
  return { ...refusalFor(reason, `${text}${hint}`), shown: `${shown ?? text}${hint}` };
}

/**
 * The mend for mail of one's own machines, which nothing signs. Where all mail comes through one such address, as
 * through the gateway of a container, it would have everybody believed.
 */
const OWN_MACHINE =
  "It came from a private address: if that is a machine of your own, and mail from elsewhere does not come through it, name it in smtp.trusted_networks.";

function comesFromNear({ config }: App, { remote_address }: Delivery): boolean {
  const is_relay = relayAt(remote_address, config.smtp.trusted_relays) !== undefined;
  return !is_relay && isPrivateAddress(remote_address);
}
