import { type DkimKeys, signMail } from "./dkim.ts";
import { fromMailbox, readHeaders } from "../reading/headers.ts";
import { asciiDomain } from "../sending/send-outcome.ts";

/** Addresses to put in place of a mail's own, by field; a field that the mail lacks stays absent. */
type Addresses = Partial<Record<"from" | "reply-to" | "to", string>>;

/** Returns the address in From of a mail that this server composed. */
export function authorOf(raw: Uint8Array): string {
  const from = fromMailbox(readHeaders(raw));
  if (!from.ok) throw new Error(`A mail of our own cannot be read: ${from.problem}`);
  return from.address;
}

/** Whether the head of a mail that this server composed is still one. */
export function isReadable(raw: Uint8Array): boolean {
  return fromMailbox(readHeaders(raw)).ok;
}

/**
 * Returns a mail that this server composed with other addresses, signed again for `domain` if it has to be. Everything
 * else stays: names, Message-ID and Date.
 */
export async function readdress(
  raw: Buffer,
  addresses: Addresses,
  signer: { domain: string; keys: DkimKeys } | null,
): Promise<Buffer> {
  const { fields, body_offset } = readHeaders(raw);
  const head = fields
    .filter(({ name }) => name !== "dkim-signature")
    .map(({ name, start, end }) => {
      const field = raw.toString("latin1", start, end);
      const address = addresses[name as keyof Addresses];
      return address === undefined ? field : withAddress(field, address);
    });
  const whole = Buffer.concat([Buffer.from(`${head.join("")}\r\n`, "latin1"), raw.subarray(body_offset)]);
  return signer === null ? whole : signMail(whole, signer.domain, signer.keys);
}

/** Replaces the address in a field with one mailbox; the address is in angle brackets at the end, or all there is. */
function withAddress(field: string, address: string): string {
  const written = asciiDomain(address);
  const angle = field.lastIndexOf("<");
  if (angle !== -1 && field.trimEnd().endsWith(">")) return `${field.slice(0, angle)}<${written}>\r\n`;
  return `${field.slice(0, field.indexOf(":") + 1)} ${written}\r\n`;
}
