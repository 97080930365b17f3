import { type DkimKeys, signMail } from "./dkim.ts";
import { fromMailbox, readHeaders } from "./headers.ts";
import { asciiDomain } from "./send-outcome.ts";

/** Addresses that a mail is to have in place of its own. */
interface Addresses {
  from: string;
  /** Only where the mail has one. */
  reply_to: string;
}

/** The address in From of a mail that this server has composed. */
export function authorOf(raw: Uint8Array): string {
  const from = fromMailbox(readHeaders(raw));
  if (!from.ok) throw new Error(`A mail of our own cannot be read: ${from.problem}`);
  return from.address;
}

/**
 * A mail that this server has composed and signed, with other addresses in From and Reply-To, signed anew for `domain`.
 * All else stays: its names, its Message-ID and its Date.
 */
export function readdress(
  raw: Buffer,
  addresses: Addresses,
  { domain, keys }: { domain: string; keys: DkimKeys },
): Promise<Buffer> {
  const { fields, body_offset } = readHeaders(raw);
  const head = fields
    .filter(({ name }) => name !== "dkim-signature")
    .map(({ name, start, end }) => {
      const field = raw.toString("latin1", start, end);
      if (name === "from") return withAddress(field, addresses.from);
      return name === "reply-to" ? withAddress(field, addresses.reply_to) : field;
    });
  const whole = [Buffer.from(`${head.join("")}\r\n`, "latin1"), raw.subarray(body_offset)];
  return signMail(Buffer.concat(whole), domain, keys);
}

/** A field with one mailbox; its address stands in angle brackets at the end, or it is all there is. */
function withAddress(field: string, address: string): string {
  const written = asciiDomain(address);
  const angle = field.lastIndexOf("<");
  if (angle !== -1 && field.trimEnd().endsWith(">")) return `${field.slice(0, angle)}<${written}>\r\n`;
  return `${field.slice(0, field.indexOf(":") + 1)} ${written}\r\n`;
}
