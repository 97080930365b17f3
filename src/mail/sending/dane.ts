import { X509Certificate } from "node:crypto";
import { checkServerIdentity, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { dnsErrorCode, isNoRecord, type Resolver } from "../../net/dns.ts";
import type { Tlsa } from "../../net/dns-reply.ts";
import { refuseOwnFault } from "../../lib/own-faults.ts";

/** Certificate usages (RFC 6698 §2.1.1): the server's own certificate, and a trust anchor that issued it. */
const DANE_EE = 3;
const DANE_TA = 2;
const MAX_ISSUERS = 10;

export interface Route {
  /** The domain of the recipient. */
  domain: string;
  host: string;
  port: number;
}

/**
 * Returns the certificates that the DNS pins for a mail server, if it is signed all the way (RFC 7672 §2.2): undefined
 * for none, `unknown` when the DNS should have answered and did not. An empty list means that TLS is required but no
 * record says which certificate.
 */
export async function pinnedCertificates(
  { domain, host, port }: Route,
  resolver: Resolver,
): Promise<Tlsa[] | undefined | "unknown"> {
  try {
    // Without an MX record the domain is its own server, and the address is all there is.
    if (host !== domain && !(await isSigned(() => resolver(domain, "MX", { validated: true }))))
      return undefined;
    const is_host_signed =
      (await isSigned(() => resolver(host, "A", { validated: true }))) ||
      (await isSigned(() => resolver(host, "AAAA", { validated: true })));
    if (!is_host_signed) return undefined;
    const records = await resolver(`_${port}._tcp.${host}`, "TLSA", { validated: true });
    return records.filter(isUsable);
  } catch (error) {
    refuseOwnFault(error);
    return isAbsent(error) ? undefined : "unknown";
  }
}

/** Returns why the certificate does not match a pin; undefined if it does. */
export async function pinFault(
  socket: TLSSocket,
  { domain, host }: Pick<Route, "domain" | "host">,
  pins: Tlsa[],
): Promise<string | undefined> {
  const shown = socket.getPeerCertificate(true);
  if (shown.raw === undefined) return "it shows no certificate";
  const { verifyCertAgainstTlsa } = await import("mx-connect/lib/dane.js");
  const certificate = new X509Certificate(shown.raw);
  const matches = (list: Tlsa[]): boolean =>
    list.length > 0 && verifyCertAgainstTlsa(certificate, list.map(toRecord), issuersOf(shown)).valid;
  // A certificate that is pinned itself needs neither the name nor a date that fits (RFC 7671 §5.1).
  if (matches(pins.filter(({ usage }) => usage === DANE_EE))) return undefined;
  const is_named = [host, domain].some((name) => checkServerIdentity(name, shown) === undefined);
  const is_current = Date.parse(certificate.validTo) > Date.now();
  const is_vouched_for = matches(pins.filter(({ usage }) => usage === DANE_TA));
  return is_vouched_for && is_named && is_current
    ? undefined
    : "its certificate is not the one that its DNS names";
}

async function isSigned(lookUp: () => Promise<unknown>): Promise<boolean> {
  try {
    await lookUp();
    return true;
  } catch (error) {
    if (isAbsent(error)) return false;
    throw error;
  }
}

function isAbsent(error: unknown): boolean {
  return isNoRecord(error) || dnsErrorCode(error) === "EINSECURE";
}

/**
 * Returns whether a record is usable; those about public authorities (0 and 1) mean nothing for mail (RFC 7672 §3.1.3).
 */
function isUsable({ usage, selector, matching_type }: Tlsa): boolean {
  return (usage === DANE_TA || usage === DANE_EE) && selector <= 1 && matching_type <= 2;
}

function toRecord({ usage, selector, matching_type, data }: Tlsa) {
  return { usage, selector, mtype: matching_type, cert: Buffer.from(data, "hex") };
}

function issuersOf(shown: DetailedPeerCertificate): X509Certificate[] {
  const issuers: X509Certificate[] = [];
  let current = shown;
  // The topmost certificate is its own issuer.
  while (issuers.length < MAX_ISSUERS && current.issuerCertificate && current.issuerCertificate !== current) {
    current = current.issuerCertificate;
    issuers.push(new X509Certificate(current.raw));
  }
  return issuers;
}
