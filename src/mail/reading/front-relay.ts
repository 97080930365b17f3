import { isIP } from "node:net";
import { clientNetwork, inNetworks } from "../../net/networks.ts";
import { type AuthResults, readAuthResults } from "./auth-results.ts";
import { domainOf, paidDomain } from "../../net/domain-owner.ts";
import type { MailHeaders } from "./headers.ts";

/**
 * Returns the authserv-id of the relay at this address, under which it writes its results (RFC 8601); undefined for any
 * other client.
 */
export function relayAt(address: string, trusted_relays: string[]): string | undefined {
  if (trusted_relays.length === 0 || isIP(address) === 0) return undefined;
  for (const entry of trusted_relays) {
    const [network = "", authserv_id] = entry.split("=");
    if (authserv_id !== undefined && inNetworks(address, [network])) return authserv_id.toLowerCase();
  }
  return undefined;
}

/**
 * Returns the party that a client counts as for shared limits: the network it comes from or, behind a relay of ours
 * through which all mail comes, the domain in the envelope.
 */
export function senderParty(
  { remote_address, mail_from }: { remote_address: string; mail_from: string },
  trusted_relays: string[],
): string {
  if (relayAt(remote_address, trusted_relays) === undefined) return clientNetwork(remote_address);
  const domain = domainOf(mail_from).toLowerCase();
  return `relayed: ${paidDomain(domain) ?? domain}`;
}

/**
 * Returns the results that a relay wrote above its own Received field. Anything below was in the mail when the relay
 * got it, and may be forged, also under the relay's name (RFC 8601 §7.1).
 */
export function resultsOfRelay(headers: MailHeaders, authserv_id: string): AuthResults[] {
  const received = headers.fields.findIndex(({ name }) => name === "received");
  return headers.fields
    .slice(0, Math.max(received, 0))
    .filter(({ name }) => name === "authentication-results")
    .map(({ value }) => readAuthResults(value))
    .filter((results) => results !== undefined)
    .filter((results) => results.authserv_id === authserv_id);
}
