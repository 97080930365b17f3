/** RFC 1035 §2.3.4. A longer one could take minutes to convert. */
const MAX_CHARS = 253;

/** Returns a domain in its A-label form; undefined where no mail can be sent to it, as to an IP address. */
export function mailDomain(text: string): string | undefined {
  // A URL's host ends at these characters, and the rest would silently be dropped.
  if (text.length > MAX_CHARS || /[/?#%\\:]/.test(text)) return undefined;
  const domain = asciiHost(text);
  const labels = domain.split(".");
  const wellFormed = labels.every((label) => /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label));
  return wellFormed && !/^\d+$/.test(labels.at(-1) ?? "") ? domain : undefined;
}
import { asciiHost } from "./web-address.ts";
