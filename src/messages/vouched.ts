import { splitAddress } from "../inboxes/addresses.ts";
import type { Identity } from "../mail/authenticate.ts";
import { mailboxes, type MailHeaders } from "../mail/headers.ts";

/** Fields that decide what a mail asks for, in which thread, and who is answered. */
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

/** Header fields that may occur once (RFC 5322 §3.6): of two, a reader and a signature may mean different ones. */
const SINGULAR = [...ACTED_UPON, "sender", "mime-version"];

/** The first field that occurs more often than it may, or undefined. */
export function repeatedField(headers: MailHeaders): string | undefined {
  return SINGULAR.find((name) => headers.all(name).length > 1);
}

/**
 * Whether the author meant this mail, as it is, for this inbox. A signature alone proves only that the author once
 * wrote it: anybody who has the mail can send it again, to anybody, with unsigned fields changed (RFC 6376 §8.6).
 * So it must have come straight from the author's server, or name the inbox in fields that are all signed.
 */
export function isMeantFor(address: string, identity: Identity, headers: MailHeaders): boolean {
  if (identity.direct) return true;
  const signed = new Set(identity.signed);
  return (
    ACTED_UPON.every((name) => headers.get(name) === undefined || signed.has(name)) &&
    ["to", "cc"].some((name) => names(headers.get(name) ?? "", address))
  );
}

function names(value: string, address: string): boolean {
  const list = mailboxes(value);
  const wanted = splitAddress(address);
  return (
    list.ok &&
    list.mailboxes.some((mailbox) => {
      const { local_part, domain } = splitAddress(mailbox.address);
      return local_part === wanted.local_part && domain === wanted.domain;
    })
  );
}
