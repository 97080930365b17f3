import { userById } from "../db/users.ts";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { Use } from "../jobs/shares.ts";
import { domainOf, paidDomain } from "./domain-owner.ts";
import { memberOf } from "../jobs/queue.ts";
import type { QueuedMail } from "./outgoing.ts";
import { asciiDomain } from "./send-outcome.ts";

/** What a mail on its way holds in memory: as it is stored, as it is sent, and what the socket has not taken yet. */
const COPIES = 3;
/** In place of the account, for all whose address nobody has proven: a group, in which each domain has its share. */
const UNPROVEN = "unproven";

/**
 * What a mail takes while it is sent. An account with many slow recipients must not hold up the mails of others, nor a slow
 * domain those to the rest, nor all of them fill the memory. Whoever asks for login codes may name any number of
 * addresses, at any number of subdomains and even domains: those addresses have together what one account has, and the
 * subdomains are one domain.
 */
export async function sendUse(
  app: App,
  tx: Db,
  { user_id, envelope_to, raw }: Pick<QueuedMail, "user_id" | "envelope_to"> & { raw: Uint8Array },
): Promise<Use> {
  const [user] = await userById(tx, { id: user_id });
  const named = domainOf(asciiDomain(envelope_to)).toLowerCase();
  const domain = paidDomain(named) ?? named;
  return {
    share: { account: user?.email_verified === 1 ? user_id : memberOf(UNPROVEN, domain), slots: null },
    weight: COPIES * raw.byteLength,
    // A relay is one server, whoever the mail is for.
    target: app.config.outbound.mode === "direct" ? domain : null,
  };
}
