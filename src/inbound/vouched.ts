import { splitAddress, tagsOf } from "../lib/mail-address.ts";
import type { Identity } from "../mail/reading/authenticate.ts";
import { mailboxes, type MailHeaders } from "../mail/reading/headers.ts";
import { readMimeValue } from "../mail/reading/mime-value.ts";
import type { SignedForm } from "../mail/reading/signed-form.ts";

/**
 * Fields that decide what a mail asks for, in which thread, and who is answered. Marks of machines are not among them, as
 * hardly anybody signs those: one that is there counts, signed or not, and one that was taken out is missed by `originalOf`
 * once the mail has come with it. Where a copy without it comes first, nothing tells it from a person's mail.
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

/** Those of them that a signature must name even where they are absent: anybody could have taken out what it does not. */
const ALWAYS_SIGNED = ["from", "date", "subject", "message-id", "content-type"];

/** Header fields that may occur once (RFC 5322 §3.6, RFC 2045 §3): of two, a reader and a signature may mean different ones. */
const SINGULAR = new Set([
  ...ACTED_UPON,
  "sender",
  "bcc",
  "mime-version",
  "content-disposition",
  "content-id",
  "content-description",
]);

/** A field that occurs more often than it may, or undefined. */
export function repeatedField(headers: MailHeaders): string | undefined {
  const seen = new Set<string>();
  for (const { name } of headers.fields) {
    if (SINGULAR.has(name) && seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

/**
 * What must be read of a mail that the author meant, as it is, for this inbox: the form that a signature covers, or null
 * for all of it. Undefined if nothing shows that it was meant for it: a signature alone proves only that the author once
 * wrote it, and anybody who has the mail can send it again, to anybody, with what is not signed changed (RFC 6376 §8.6).
 * So it must have come straight from the author's server, or name the inbox in a form that one signature covers whole.
 */
export function readingFor(
  address: string,
  identity: Identity,
  headers: MailHeaders,
): SignedForm | null | undefined {
  if (identity.direct) return null;
  return identity.signed.find(
    ({ fields }) =>
      isWhole(new Set(fields), headers) &&
      ["to", "cc"].some((name) => fields.includes(name) && names(headers.get(name) ?? "", address)),
  );
}

/** Whether what is signed is all that is acted upon, and no more could have been. */
function isWhole(signed: ReadonlySet<string>, headers: MailHeaders): boolean {
  if (!ALWAYS_SIGNED.every((name) => signed.has(name))) return false;
  if (!ACTED_UPON.every((name) => headers.get(name) === undefined || signed.has(name))) return false;
  // What is made of parts has no encoding and no disposition of its own (RFC 2045 §6.4).
  if (readMimeValue(headers.get("content-type") ?? "")?.value.startsWith("multipart/") === true) return true;
  const disposition = headers.get("content-disposition");
  const isPlain = disposition === undefined || disposition.toLowerCase() === "inline";
  return signed.has("content-transfer-encoding") && (isPlain || signed.has("content-disposition"));
}

function names(value: string, address: string): boolean {
  const list = mailboxes(value);
  const wanted = meaningOf(address);
  return list.ok && list.mailboxes.some((mailbox) => meaningOf(mailbox.address) === wanted);
}

/** The address with what its tag says: whoever sends a mail again chooses the recipient's. */
function meaningOf(address: string): string {
  const parts = splitAddress(address);
  const { local_part, domain, tag } = parts;
  const words = tag !== null && tag.startsWith("c_") ? [tag] : tagsOf(parts);
  return `${[local_part, ...words].join("+")}@${domain}`;
}
