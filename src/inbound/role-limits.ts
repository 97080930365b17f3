import { refusalFor } from "../reasons.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { takeTurn } from "../db/rate-limits.ts";
import { DAY_SECONDS } from "../lib/durations.ts";
import { sha256 } from "../lib/sha256.ts";
import { networksAround } from "../net/networks.ts";
import { domainOf, registrableDomain } from "../net/domain-owner.ts";
import { isPublicProvider } from "../net/public-providers.ts";
import type { Delivery, Examined, Reception } from "./decide.ts";
import { type Client, notePutOffFor, wasPutOffFor } from "./put-off.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

/**
 * Limits for mail to role addresses, in all and from one sender, so that nobody keeps others from reaching the
 * operator.
 */
const RULE = { limit: 20, window_seconds: HOUR_SECONDS };
const SENDER_RULE = { limit: 5, window_seconds: HOUR_SECONDS };
/** Keys of the two shares: what is forged uses up nothing of what proven people may write to the operator. */
const PROVEN = "role-mail:proven";
const UNPROVEN = "role-mail:unproven";
/** At RCPT nobody knows yet whose mail it is: a client is recognised by the notes of earlier tries. */
const SENDER = "role-mail:sender";

const COME_LATER: Reception = {
  ...refusalFor(
    "rate_limited",
    "The operator has been written to often enough this hour; please try again later",
  ),
  limit: `${RULE.limit} mails to postmaster and abuse in an hour`,
};
const SENDER_COMES_LATER: Reception = {
  ...refusalFor(
    "rate_limited",
    `The operator takes no more than ${SENDER_RULE.limit} mails in an hour from one domain, from one mailbox of a public provider, or from one network where the sender is not proven; please try again later`,
  ),
  limit: `${SENDER_RULE.limit} mails to postmaster and abuse in an hour from one domain or network`,
};

type Sent = Pick<Examined, "identity" | "from_address">;

/**
 * Returns the reply to a mail to a role address while the operator takes no more. It is remembered for RCPT if the mail
 * is for others too.
 */
export function refuseRole(app: App, delivery: Delivery, mail: Sent): Reception | undefined {
  const others = delivery.recipients.some(({ role }) => role === undefined);
  const { ok, retry_after_seconds } = app.limiter.peek(senderOf(delivery, mail), SENDER_RULE);
  if (!ok) {
    if (others) notePutOffFor(app, SENDER, delivery, retry_after_seconds);
    return SENDER_COMES_LATER;
  }
  const share = shareOf(mail);
  if (app.limiter.peek(share, RULE).ok) return undefined;
  if (others) notePutOffFor(app, share, delivery);
  return COME_LATER;
}

/** A mail that has come before gets no second letter, as its sender's server brings it twice where an answer gets lost. */
const SAME_RULE = { limit: 1, window_seconds: DAY_SECONDS };

/** Whether a mail has not come to this role address before, in the commit that queues its letter. */
export function isNewToRole(
  app: App,
  tx: Db,
  { address, mail }: { address: string; mail: Pick<Examined, "dedupe_key" | "subject" | "body_hash"> },
): boolean {
  const { dedupe_key, subject, body_hash } = mail;
  const key = `role-mail:same:${sha256([address, dedupe_key, subject, body_hash].join("\n"), "hex")}`;
  return takeTurn(app, tx, { key, rule: SAME_RULE }).ok;
}

/** Counts a mail to role addresses, once, in the commit that queues its letters. */
export function countRole(app: App, tx: Db, delivery: Delivery, mail: Sent): void {
  takeTurn(app, tx, { key: senderOf(delivery, mail), rule: SENDER_RULE });
  takeTurn(app, tx, { key: shareOf(mail), rule: RULE });
}

/** Returns the reply at RCPT to a mail that was put off because of the operator, until there is a free turn again. */
export function roleStillBusy(app: App, client: Client): Reception | undefined {
  if (wasPutOffFor(app, SENDER, client)) return SENDER_COMES_LATER;
  const isBusy = (share: string) => wasPutOffFor(app, share, client) && !app.limiter.peek(share, RULE).ok;
  return isBusy(PROVEN) || isBusy(UNPROVEN) ? COME_LATER : undefined;
}

function shareOf({ identity }: Sent): string {
  return identity.authenticated ? PROVEN : UNPROVEN;
}

/**
 * Returns the key of a sender. A proven sender is the registrable domain or, at a public provider, the mailbox; mail
 * that may be forged counts for the network that brings it.
 */
function senderOf({ remote_address }: Delivery, { identity, from_address }: Sent): string {
  const domain = domainOf(from_address);
  const people = isPublicProvider(domain) ? from_address : (registrableDomain(domain) ?? domain);
  const whose = identity.authenticated ? people : networksAround(remote_address)[0];
  return `${shareOf({ identity, from_address })}:${whose}`.toLowerCase();
}
