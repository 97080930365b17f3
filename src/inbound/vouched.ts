import { splitAddress, tagsOf } from "../lib/mail-address.ts";
import type { Identity } from "../mail/reading/authenticate.ts";
import { mailboxes, type MailHeaders } from "../mail/reading/headers.ts";
import { readMimeValue } from "../mail/reading/mime-value.ts";
import type { SignedForm } from "../mail/reading/signed-form.ts";

/**
 * Fields that decide what a mail asks for, in which thread, and who is answered. Marks of machines are not among them,
 * because hardly anybody signs those: a mark that is there counts, signed or not. If one was taken out, `originalOf`
 * notices it once the mail has come with the mark. If a copy without the mark comes first, nothing distinguishes it
 * from a person's mail.
 */
const ACTED_UPON = [
  "date",
  "to",
  "cc",
  "subject",
  "message-id",
  "reply-to",
  "in-reply-to",
  "references",
  "content-type",
  "content-transfer-encoding",
];

/**
 * Fields of these that a signature must name even if they are absent: anybody could have removed one that it does not
 * name.
 */
const ALWAYS_SIGNED = ["from", "date", "subject", "message-id", "content-type"];

/**
 * Header fields that may occur once (RFC 5322 §3.6, RFC 2045 §3): if there are two, a reader and a signature may mean
 * different ones.
 */
const SINGULAR = new Set([
  ...ACTED_UPON,
  "sender",
  "bcc",
  "mime-version",
  "content-disposition",
  "content-id",
  "content-description",
]);

/** Returns a field that occurs more often than it may, or undefined. */
export function repeatedField(headers: MailHeaders): string | undefined {
  const seen = new Set<string>();
  for (const { name } of headers.fields) {
    if (SINGULAR.has(name) && seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

/**
 * Returns the part of a mail that must be read because the author meant it for this inbox: the form that a signature
 * covers, or null for all of it. Undefined if nothing shows that the mail was meant for this inbox. A signature alone
 * proves only that the author once wrote it: anybody who has the mail can send it again, to anybody, with unsigned
 * parts changed (RFC 6376 §8.6). The author's server alone proves no more: a filter there, of somebody whom the author
 * wrote to, redirects the mail unchanged (RFC 5228 §4.2). Therefore the mail must name the inbox, and must have come
 * straight from that server or have one signature that covers it whole. A client in a trusted network is believed
 * whatever the mail says.
 */
export function readingFor(
  address: string,
  identity: Identity & { trusted_network?: boolean },
  headers: MailHeaders,
): SignedForm | null | undefined {
  if (identity.trusted_network === true) return null;
  const naming = ["to", "cc"].filter((name) => names(headers.get(name) ?? "", address));
  if (identity.direct && (naming.length > 0 || mentions(headers, address))) return null;
  if (naming.length === 0) return undefined;
  return identity.signed.find(
    ({ fields }) => isWhole(new Set(fields), headers) && naming.some((name) => fields.includes(name)),
  );
}

/** Returns whether the signature covers all fields that are acted upon, and nobody could have added or removed one. */
function isWhole(signed: ReadonlySet<string>, headers: MailHeaders): boolean {
  if (!ALWAYS_SIGNED.every((name) => signed.has(name))) return false;
  if (!ACTED_UPON.every((name) => headers.get(name) === undefined || signed.has(name))) return false;
  // A multipart type has no transfer encoding and no disposition of its own that counts (RFC 2045 §6.4).
  if (readMimeValue(headers.get("content-type") ?? "")?.value.startsWith("multipart/") === true) return true;
  const disposition = headers.get("content-disposition");
  const is_plain = disposition === undefined || disposition.toLowerCase() === "inline";
  return signed.has("content-transfer-encoding") && (is_plain || signed.has("content-disposition"));
}

/** Returns whether a list of recipients that cannot be parsed, such as one with semicolons, contains the address. */
function mentions(headers: MailHeaders, address: string): boolean {
  return ["to", "cc"].some((name) => {
    const value = headers.get(name) ?? "";
    if (mailboxes(value).ok) return false;
    return value
      .split(/[\s,;<>]+/)
      .some((word) => word.includes("@") && meaningOf(word) === meaningOf(address));
  });
}

function names(value: string, address: string): boolean {
  const list = mailboxes(value);
  const wanted = meaningOf(address);
  return list.ok && list.mailboxes.some((mailbox) => meaningOf(mailbox.address) === wanted);
}

/**
 * Returns the address in a form that keeps the meaning of its tag: whoever replays a mail chooses the recipient, and
 * with another tag the mail would mean something else.
 */
function meaningOf(address: string): string {
  const parts = splitAddress(address);
  const { local_part, domain, tag } = parts;
  const words = tag !== null && tag.startsWith("c_") ? [tag] : tagsOf(parts);
  return `${[local_part, ...words].join("+")}@${domain}`;
}
