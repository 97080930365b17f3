import { domainToASCII } from "node:url";

/** A longer address is none that anybody wrote by hand or program, and the parts of one have bounds of their own. */
export const MAX_URL_CHARS = 4_000;
const MAX_HOST_CHARS = 300;
/** Several times what a name can have (RFC 1035 §2.3.4), as some letters become several. */
const MAX_DOMAIN_CHARS = 1_024;

/**
 * Returns an address, parsed; null where it is none, or too long. Combining marks in a host are put in order in quadratic
 * time (`URL` brings it into NFC), so that a long one would hold up the thread for minutes.
 */
export function urlOf(text: string, base?: string): URL | null {
  if (text.length > MAX_URL_CHARS) return null;
  const host = /^[a-z]+:[/\\]*([^/\\?#]*)/i.exec(text)?.[1] ?? "";
  return host.length > MAX_HOST_CHARS ? null : URL.parse(text, base);
}

/** Returns a domain in A-labels (RFC 5890 §2.3.2.1); the empty string where it is none, or too long. */
export function asciiHost(domain: string): string {
  return domain.length > MAX_DOMAIN_CHARS ? "" : domainToASCII(domain);
}
