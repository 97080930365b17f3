import { userById } from "../../db/users.ts";
import type { Db } from "../../db/database.ts";
import type { Authority, InboxRow, MessageRow, UserRow } from "../../db/schema.ts";
import { inboxById } from "../inboxes/inboxes.ts";
import { authorityOfSender, judgeAgain } from "../../inbound/judge-sender.ts";

type Asked = Pick<MessageRow, "user_id" | "inbox_id" | "sender" | "authority" | "state">;

/** Why no answer to a message may go out any more. */
export interface Withheld {
  why: string;
}

/** The present conditions for an answer: the inbox and its owner, and what the sender may be told. */
export interface Answerable {
  why: null;
  inbox: InboxRow;
  owner: UserRow;
  authority: Authority;
}

/**
 * Returns the present conditions for the answer to a message, or why it is withheld: since the message came, the inbox
 * may have been deleted, told not to answer, or given another allowlist.
 */
export async function answerNow(db: Db, message: Asked): Promise<Answerable | Withheld> {
  const [inbox] = message.inbox_id === null ? [] : await inboxById(db, { id: message.inbox_id });
  const [owner] = await userById(db, { id: message.user_id });
  if (!inbox || !owner || owner.deleted_at !== null)
    return { why: "No answer is sent, because the inbox has been deleted meanwhile." };
  const why = whyNotBy(inbox, owner, message);
  return why === undefined
    ? { why: null, inbox, owner, authority: authorityOfSender(inbox, owner, message) }
    : { why: `No answer is sent, because the inbox ${why}.` };
}

function whyNotBy(inbox: InboxRow, owner: UserRow, message: Asked): string | undefined {
  if (inbox.reply_enabled !== 1) return "has been set to answer nobody meanwhile";
  // That the inbox does not take its mail is what its sender is told then.
  if (message.state === "rejected") return undefined;
  const verdict = judgeAgain(inbox, owner, message);
  if (!verdict.accepted) return "takes no mail of its sender any more";
  if (verdict.no_reply_reason !== null)
    return "answers no strangers any more whose address cannot be verified";
  return undefined;
}
