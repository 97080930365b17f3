import type { InboxRow, UserRow } from "../db/schema.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { isKnownAddress } from "../resources/inboxes/allowlist.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { mailboxes, type MailHeaders } from "../mail/reading/headers.ts";
import { isProgramMail } from "../mail/reading/program-marks.ts";

/**
 * Why a mail that its sender's server sent may hold the words of somebody else: a form on a web page mails what others
 * typed, in the name of the page's owner and from the owner's server.
 */
export type ForOthers = "reply_to" | "sender" | "web_script";

/** The marks in a mail that tell for whom it was written. */
export interface WriterMarks {
  /** The addresses of its Reply-To; null if it has none, or one that cannot be read. */
  reply_to: string[] | null;
  /** The addresses of its Sender (RFC 5322 §3.6.2), likewise. */
  sender: string[] | null;
  web_script: boolean;
}

export function writerMarks(headers: MailHeaders): WriterMarks {
  return {
    reply_to: addressesIn(headers.get("reply-to") ?? ""),
    sender: addressesIn(headers.get("sender") ?? ""),
    web_script: isProgramMail(headers),
  };
}

function addressesIn(value: string): string[] | null {
  if (value.trim() === "") return [];
  const list = mailboxes(value);
  if (!list.ok || list.mailboxes.length === 0) return null;
  return list.mailboxes.map(({ address }) => address);
}

interface Shown {
  marks: WriterMarks;
  from_address: string;
  /** Whether its Sender field is from the author's server. */
  shows_sender: boolean;
  /** For whom the author's domain has signed it, as far as its signatures say. */
  agents: string[];
}

/** Why a mail may hold the words of somebody other than its sender, or null. */
export function whyForOthers(
  { marks, from_address, shows_sender, agents }: Shown,
  { inbox, user }: { inbox: InboxRow; user: UserRow },
): ForOthers | null {
  if (marks.web_script) return "web_script";
  const own = [from_address, addressOf(inbox), ...(user.email_verified === 1 ? [user.email] : [])];
  const is_theirs = (address: string): boolean =>
    own.some((one) => isSameMailbox(one, address)) || isKnownAddress(address, { inbox, owner: user });
  if (marks.reply_to?.every(is_theirs) !== true) return "reply_to";
  const { domain } = splitAddress(from_address);
  // What stands there at another domain may be no address at all (RFC 6376 §3.5).
  if (!agents.every((agent) => splitAddress(agent).domain !== domain || is_theirs(agent))) return "sender";
  // The author's server names there who has signed in, if that is not the author (RFC 6409 §8.1). In what came another
  // way, and unsigned, anybody may have added it.
  if (!shows_sender) return null;
  return marks.sender?.every(is_theirs) === true ? null : "sender";
}

/** Returns whether two addresses differ at most in the tag: mail to both reaches the same person, or the same inbox. */
function isSameMailbox(one: string, other: string): boolean {
  const [a, b] = [splitAddress(one), splitAddress(other)];
  return a.local_part === b.local_part && a.domain === b.domain;
}
