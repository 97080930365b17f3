import { domainToASCII } from "node:url";
import { getDomain, parse } from "tldts";

/** The part after the last "@". */
export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf("@") + 1);
}

/** Whether two names are those of one domain, however they are written. */
export function isSameDomain(one: string, other: string): boolean {
  const name = normalize(one);
  return name !== "" && name === normalize(other);
}

/**
 * Whether two domains are one owner's: equal, or with the same registrable domain. Suffixes that companies share
 * out (`github.io`, `uk.com`) count as public, so their tenants are strangers to each other.
 */
export function inSameHands(one: string, other: string): boolean {
  const [a, b] = [normalize(one), normalize(other)];
  if (a === "" || b === "") return false;
  if (a === b) return true;
  const registrable = registrableDomain(a);
  return registrable !== null && registrable === registrableDomain(b);
}

/** Whether two addresses are one owner's: as `inSameHands`, and by host and port where nothing is registered (`localhost`, an IP address). */
export function isSameSite(one: URL, other: URL): boolean {
  const registrable = registrableDomain(one.hostname);
  return registrable === null ? one.host === other.host : registrable === registrableDomain(other.hostname);
}

/** The part of a domain that somebody has registered; null for a suffix under which everybody can. */
export function registrableDomain(domain: string): string | null {
  return getDomain(normalize(domain), { allowPrivateDomains: true });
}

/** The part of a domain that somebody has paid for, also where its owner lets others have what is below it; null for none. */
export function paidDomain(domain: string): string | null {
  return getDomain(normalize(domain));
}

/** Whether a name ends as names on the internet do; `notes.txt` does not. */
export function isPublicName(name: string): boolean {
  const { isIcann, isPrivate, domain } = parse(normalize(name), { allowPrivateDomains: true });
  return domain !== null && (isIcann === true || isPrivate === true);
}

function normalize(domain: string): string {
  return domainToASCII(domain).toLowerCase().replace(/\.$/, "");
}
