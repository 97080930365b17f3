import { prepared } from "../../db/prepared.ts";
import { userById } from "../../db/users.ts";
import type { Db } from "../../db/database.ts";
import { memberOf, strangersTo } from "../../jobs/queue.ts";
import type { Use } from "../../jobs/shares.ts";
import { isCausedByStranger } from "../../db/strangers.ts";
import { domainOf, paidDomain } from "../../net/domain-owner.ts";
import type { QueuedMail } from "./outgoing.ts";
import { asciiDomain } from "./send-outcome.ts";

/** Copies of a mail in memory while it is sent: as stored, as sent, and in the socket's buffer. */
const COPIES = 3;
/** The group of all recipients with unproven addresses, in place of an account; each domain in it has its share. */
const UNPROVEN = "unproven";

type Addressed = Pick<QueuedMail, "user_id" | "message_id" | "envelope_to">;

/**
 * Returns the slot, memory and target that a mail uses while it is sent. An account with many slow recipients must not
 * hold up others, a slow domain not the rest, and together they must not fill the memory. Sign-in codes can be
 * requested for any number of addresses, subdomains and domains; these addresses have together as much as one account,
 * and subdomains count as their domain. All strangers to all accounts count together as well.
 */
export async function sendUse(tx: Db, mail: Addressed & { raw: Uint8Array }): Promise<Use> {
  const named = domainOf(asciiDomain(mail.envelope_to)).toLowerCase();
  const domain = paidDomain(named) ?? named;
  return {
    share: { account: await accountOf(tx, mail, domain), slots: null },
    weight: COPIES * mail.raw.byteLength,
    target: domain,
  };
}

async function accountOf(
  tx: Db,
  { user_id, message_id, envelope_to }: Addressed,
  domain: string,
): Promise<string> {
  const [user] = await userById(tx, { id: user_id });
  if (user?.email_verified !== 1) return memberOf(UNPROVEN, domain);
  if (message_id === null || envelope_to === user.email) return user_id;
  const [message] = await messageById(tx, { id: message_id });
  return message && isCausedByStranger(message) ? strangersTo(user_id) : user_id;
}

const messageById = prepared((db, { id }: { id: string }) =>
  db.selectFrom("messages").select(["authority", "retry_of"]).where("id", "=", id),
);
