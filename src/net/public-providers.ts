import { parse } from "tldts";
import { BRANDS, DOMAINS } from "./provider-names.ts";

/**
 * Returns whether a domain is a public mail provider, whose users share nothing else. Knows the most used ones; no list
 * is ever complete.
 */
export function isPublicProvider(domain: string): boolean {
  return DOMAINS.has(domain) || BRANDS.has(parse(domain).domainWithoutSuffix ?? "");
}
