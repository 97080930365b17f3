import type { InboxRow, UserRow } from "../db/schema.ts";
import { addressOf } from "../inboxes/addresses.ts";
import { isKnownAddress } from "../inboxes/allowlist.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { mailboxes, type MailHeaders } from "../mail/headers.ts";

/**
 * What PHP and its hosts put into a mail that the script of a web page has sent, and what a program asks a service that
 * sends for it. What such a service writes into every mail (`X-SG-EID`, `X-Mailgun-Sid`, `X-SES-Outgoing`,
 * `Feedback-ID`) is none of these: it may be the relay of somebody's mail program.
 */
const SCRIPT_FIELDS = [
  "x-php-originating-script",
  "x-php-script",
  "x-phpbb-origin",
  "x-mailgun-variables",
  "x-mailgun-tag",
  "x-pm-tag",
];
/** Programs of web pages by the name that they give in X-Mailer, and no people's mail program. */
const SCRIPT_MAILER =
  /^\s*(?:(?:php(?:mailer|bb)?|drupal|vbulletin|mybb)(?![a-z])|(?:wpmailsmtp|easywpsmtp)\/|wordpress\b)/i;
/** By which SendGrid names a mail without a Message-ID, as its interface for programs takes them: mail programs write one. */
const NAMED_BY_SERVICE = /@(?:geopod-)?ismtpd-?[\w-]{1,60}(?:\.sendgrid\.net)?>?\s*$/i;

/**
 * Why a mail that is its sender's may hold the words of somebody else: a form on a web page mails them in the name of
 * whoever the page belongs to, from their own server.
 */
export type ForOthers = "reply_to" | "web_script";

/** What a mail says by itself about for whom it was written. */
export interface WriterMarks {
  /** The addresses of its Reply-To; null where it has one that names none, or cannot be read. */
  reply_to: string[] | null;
  web_script: boolean;
}

export function writerMarks(headers: MailHeaders): WriterMarks {
  return {
    reply_to: replyTo(headers.get("reply-to") ?? ""),
    web_script: isFromScript(headers),
  };
}

function isFromScript(headers: MailHeaders): boolean {
  return (
    SCRIPT_FIELDS.some((name) => headers.get(name) !== undefined) ||
    headers.all("x-mailer").some((name) => SCRIPT_MAILER.test(name)) ||
    NAMED_BY_SERVICE.test(headers.get("message-id") ?? "")
  );
}

function replyTo(value: string): string[] | null {
  if (value.trim() === "") return [];
  const list = mailboxes(value);
  if (!list.ok || list.mailboxes.length === 0) return null;
  return list.mailboxes.map(({ address }) => address);
}

/** Why a mail may hold the words of somebody else than its sender, or null. */
export function whyForOthers(
  { marks, from_address }: { marks: WriterMarks; from_address: string },
  { inbox, user }: { inbox: InboxRow; user: UserRow },
): ForOthers | null {
  if (marks.web_script) return "web_script";
  const own = [from_address, addressOf(inbox), ...(user.email_verified === 1 ? [user.email] : [])];
  const is_theirs = (address: string): boolean =>
    own.some((one) => isSameMailbox(one, address)) || isKnownAddress(address, { inbox, owner: user });
  return marks.reply_to?.every(is_theirs) === true ? null : "reply_to";
}

/** Whatever tag stands behind its local part: the mail comes to the same person, or to the same inbox. */
function isSameMailbox(one: string, other: string): boolean {
  const [a, b] = [splitAddress(one), splitAddress(other)];
  return a.local_part === b.local_part && a.domain === b.domain;
}
