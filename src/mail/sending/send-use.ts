import { prepared } from "../../db/prepared.ts";
import { userById } from "../../db/users.ts";
import type { Db } from "../../db/database.ts";
import { memberOf, strangersTo } from "../../jobs/queue.ts";
import type { Use } from "../../jobs/shares.ts";
import { isOfStrangers } from "../../db/strangers.ts";
import { domainOf, paidDomain } from "../../net/domain-owner.ts";
import type { QueuedMail } from "./outgoing.ts";
import { asciiDomain } from "./send-outcome.ts";

/** Copies of a mail in memory while it is sent: as stored, as sent, and what the socket has not taken yet. */
const COPIES = 3;
/** The group, in place of an account, of all whose address nobody has proven; each domain in it has its share. */
const UNPROVEN = "unproven";

type Addressed = Pick<QueuedMail, "user_id" | "message_id" | "envelope_to">;

/**
 * What a mail takes while it is sent. An account with many slow recipients must not hold up the mails of others, nor a slow
 * domain those to the rest, nor all of them fill the memory. Whoever asks for login codes may name any number of
 * addresses, at any number of subdomains and even domains: those addresses have together what one account has, and the
 * subdomains are one domain. So have all strangers together, who may write to every account from as many.
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
  return message && isOfStrangers(message) ? strangersTo(user_id) : user_id;
}

const messageById = prepared((db, { id }: { id: string }) =>
  db.selectFrom("messages").select(["authority", "retry_of"]).where("id", "=", id),
);
