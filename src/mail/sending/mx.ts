import { dnsErrorCode, isNoRecord, type Resolver } from "../../net/dns.ts";
import { refuseOwnFault } from "../../lib/own-faults.ts";
import { allowedByOperator, isPublicAddress } from "../../net/guarded-fetch.ts";
import { messageOf } from "../../errors.ts";

/** Why a mail could not be offered to any server; `lasting` when a retry would fail the same way. */
export interface NoHost {
  lasting: boolean;
  /** Enhanced status code (RFC 3463). */
  enhanced: string;
  sentence: string;
  /**
   * Only a look-up of ours says so. It may be wrong for a while: a forwarder without its upstream at boot or a private
   * network's own names answer like this for all names.
   */
  doubtful?: true;
}

/** How many servers of a domain are tried that have an address. */
export const MAX_HOSTS = 5;
/** How many names of servers are looked up for that. */
const MAX_NAMES = 20;
const MAX_ADDRESSES_PER_HOST = 4;

/**
 * Returns the names of a domain's mail servers (A-labels) in the order in which to try them (RFC 5321 §5.1). Throws
 * NoHandlesError, as `hostAddresses` does.
 */
export async function mailHosts(domain: string, resolver: Resolver): Promise<string[] | NoHost> {
  let records: { exchange: string; priority: number }[];
  try {
    records = await resolver(domain, "MX");
  } catch (error) {
    refuseOwnFault(error);
    // Without an MX record the domain itself is the server.
    if (dnsErrorCode(error) === "ENODATA") return [domain];
    const gone = `The domain ${domain} does not exist. Check the address.`;
    // Such a name cannot exist, whoever is asked.
    if (dnsErrorCode(error) === "EBADNAME") return noHost(true, "5.1.2", gone);
    return isNoRecord(error)
      ? doubtful("5.1.2", gone)
      : noHost(false, "4.4.3", `The DNS did not say where mail for ${domain} goes: ${messageOf(error)}`);
  }
  const servers = records.filter(({ exchange }) => exchange !== "" && exchange !== ".");
  if (servers.length === 0) {
    // RFC 7505 section 3
    return noHost(true, "5.1.10", `${domain} takes no mail at all, as its DNS says. Check the address.`);
  }
  return inOrder(servers)
    .slice(0, MAX_NAMES)
    .map(({ exchange }) => exchange);
}

/**
 * Returns the addresses of a mail server that may be dialled: public ones, and those the operator allows. IPv4 and IPv6
 * alternate, so that neither is left out; IPv4 first, because more servers lack a reverse name for their IPv6 address
 * and are refused for it.
 */
export async function hostAddresses(
  host: string,
  rules: { resolver: Resolver; egress_allow: string[] },
): Promise<string[] | NoHost> {
  const lookUps = await Promise.allSettled([rules.resolver(host, "A"), rules.resolver(host, "AAAA")]);
  for (const lookUp of lookUps) if (lookUp.status === "rejected") refuseOwnFault(lookUp.reason);
  const found = inTurns(lookUps.map((lookUp) => (lookUp.status === "fulfilled" ? lookUp.value : [])));
  const permitted = found.filter(
    (address) => isPublicAddress(address) || allowedByOperator(host, address, rules.egress_allow),
  );
  if (permitted.length > 0) return permitted.slice(0, MAX_ADDRESSES_PER_HOST);
  if (found.length > 0) {
    return doubtful(
      "5.4.4",
      `The mail server ${host} has only addresses inside of private networks (${found[0]}), so no connection is made to it. If it is meant, the operator of this server can add "${host}" to egress.allow.`,
    );
  }
  const is_unknown = lookUps.every((lookUp) => lookUp.status === "rejected" && isNoRecord(lookUp.reason));
  return is_unknown
    ? doubtful("5.4.4", `The mail server ${host} has no address in the DNS.`)
    : noHost(false, "4.4.3", `The DNS did not give the address of the mail server ${host}.`);
}

function inTurns(lists: string[][]): string[] {
  const longest = Math.max(...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, turn) => lists.flatMap((list) => list[turn] ?? [])).flat();
}

/** Sorts servers by preference; those of one preference in random order, to spread the load (RFC 5321 section 5.1). */
function inOrder<T extends { priority: number }>(servers: T[]): T[] {
  return servers
    .map((server) => ({ server, lot: Math.random() }))
    .sort((a, b) => a.server.priority - b.server.priority || a.lot - b.lot)
    .map(({ server }) => server);
}

function noHost(lasting: boolean, enhanced: string, sentence: string): NoHost {
  return { lasting, enhanced, sentence };
}

function doubtful(enhanced: string, sentence: string): NoHost {
  return { ...noHost(true, enhanced, sentence), doubtful: true };
}
