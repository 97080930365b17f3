import { asciiHost } from "../lib/web-address.ts";
import { getDomain, parse } from "tldts";

/** Returns the part after the last "@". */
export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf("@") + 1);
}

/** Returns whether two names mean the same domain, in any notation. */
export function isSameDomain(one: string, other: string): boolean {
  const name = normalize(one);
  return name !== "" && name === normalize(other);
}

/**
 * Returns whether two domains have one owner: equal, or with the same registrable domain. Suffixes that companies rent
 * out (`github.io`, `uk.com`) count as public, so their tenants are strangers to each other.
 */
export function inSameHands(one: string, other: string): boolean {
  const [a, b] = [normalize(one), normalize(other)];
  if (a === "" || b === "") return false;
  if (a === b) return true;
  const registrable = registrableDomain(a);
  return registrable !== null && registrable === registrableDomain(b);
}

/**
 * Returns whether two URLs have one owner: like `inSameHands`, and by host and port where nothing is registered
 * (`localhost`, an IP address).
 */
export function isSameSite(one: URL, other: URL): boolean {
  const registrable = registrableDomain(one.hostname);
  return registrable === null ? one.host === other.host : registrable === registrableDomain(other.hostname);
}

/** Returns the registrable domain; null for a public suffix, under which everybody can register. */
export function registrableDomain(domain: string): string | null {
  return getDomain(normalize(domain), { allowPrivateDomains: true });
}

/** Returns the domain registered at a registry, also where its owner rents out names below it; null for none. */
export function paidDomain(domain: string): string | null {
  return getDomain(normalize(domain));
}

/** Returns whether a name has a known top-level domain; `notes.txt` does not. */
export function isPublicName(name: string): boolean {
  const { isIcann, isPrivate, domain } = parse(normalize(name), { allowPrivateDomains: true });
  return domain !== null && (isIcann === true || isPrivate === true);
}

function normalize(domain: string): string {
  return asciiHost(domain).toLowerCase().replace(/\.$/, "");
}
