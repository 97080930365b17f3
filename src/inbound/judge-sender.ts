import { allowlistOf } from "../db/inbox-columns.ts";
import type { Db } from "../db/database.ts";
import type { Authority, InboxRow, MessageRow, UserRow } from "../db/schema.ts";
import { isKeyRevoked } from "../resources/accounts/revoked-keys.ts";
import { isListed } from "../resources/inboxes/allowlist.ts";
import { policyOf } from "../resources/inboxes/settings.ts";

/** What is known about a sender before the mail's content is examined. */
export interface SenderFacts {
  from_address: string;
  authenticated: boolean;
}

export type SenderVerdict =
  | { accepted: true; authority: Authority; no_reply_reason: string | null }
  | { accepted: false; authority: Authority; reason: "auth_failed" | "not_allowlisted" };

type Person = Pick<UserRow, "email" | "email_verified">;

/** The authority table (decision L.4): who may instruct, who is only read, who is refused. */
export function judgeSender(inbox: InboxRow, user: Person, sender: SenderFacts): SenderVerdict {
  const policy = policyOf(inbox);
  const is_owner = sender.from_address === user.email && user.email_verified === 1;
  // This comes before the list, which may be damaged: the owner needs no entry.
  if (sender.authenticated && is_owner) return { accepted: true, authority: "owner", no_reply_reason: null };
  const allowlist = allowlistOf(inbox);
  const listed = isListed(sender.from_address, allowlist);
  if (sender.authenticated) {
    if (listed) return { accepted: true, authority: "listed", no_reply_reason: null };
    if (allowlist.length === 0) return { accepted: true, authority: "stranger", no_reply_reason: null };
    return { accepted: false, authority: "stranger", reason: "not_allowlisted" };
  }
  if (is_owner || listed) return { accepted: false, authority: "unauthenticated", reason: "auth_failed" };
  if (allowlist.length > 0)
    return {
      accepted: false,
      authority: "unauthenticated",
      reason: "not_allowlisted",
    };
  const no_reply_reason = policy.reply_to_unauthenticated ? null : "sender_unauthenticated";
  return { accepted: true, authority: "unauthenticated", no_reply_reason };
}

/** Like `judgeSender`, for the sender of a stored message, by the present state of the inbox and its owner. */
export function judgeAgain(
  inbox: InboxRow,
  user: Person,
  { sender, authority }: Pick<MessageRow, "sender" | "authority">,
): SenderVerdict {
  return judgeSender(inbox, user, {
    from_address: sender ?? "",
    authenticated: authority !== "unauthenticated",
  });
}

/** Authorities by what they allow, weakest first. */
export const RANK: Authority[] = ["unauthenticated", "stranger", "listed", "owner"];

/** Returns the authority that a stored message has now: that of its sender, unless the API key that asked for it was revoked. */
export async function authorityNow(
  db: Db,
  { inbox, user }: { inbox: InboxRow; user: Person },
  message: Pick<MessageRow, "sender" | "authority" | "key_id">,
): Promise<Authority> {
  return (await isKeyRevoked(db, message)) ? "unauthenticated" : authorityOfSender(inbox, user, message);
}

/**
 * Returns the authority that the sender of a stored message has now. It is never more than on arrival, but they may have been
 * removed from the list since.
 */
export function authorityOfSender(
  inbox: InboxRow,
  user: Person,
  { sender, authority }: Pick<MessageRow, "sender" | "authority">,
): Authority {
  // Without a sender it is a call, which only the owner can make.
  if (sender === null) return authority;
  const now = judgeAgain(inbox, user, { sender, authority }).authority;
  return RANK.indexOf(now) < RANK.indexOf(authority) ? now : authority;
}
