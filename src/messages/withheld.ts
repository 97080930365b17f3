import type { Db } from "../db/database.ts";
import { prepared, remembered } from "../db/prepared.ts";
import type { InboxRow, MessageRow } from "../db/schema.ts";
import { inboxById } from "../inboxes/inboxes.ts";
import { judgeSender } from "./policy.ts";

type Asked = Pick<MessageRow, "user_id" | "inbox_id" | "sender" | "authority">;

/**
 * The inbox of a message as it is now, or why no answer to it may go out any more: the inbox may have been deleted, told
 * not to answer or given another list since the message came.
 */
export async function inboxToAnswerFrom(db: Db, message: Asked): Promise<InboxRow | string> {
  const [inbox] = message.inbox_id === null ? [] : await inboxById(db, { id: message.inbox_id });
  const [user] = await userById(db, { id: message.user_id });
  if (!inbox || !user) return "No answer is sent, because the inbox has been deleted meanwhile.";
  if (inbox.reply_enabled !== 1)
    return "No answer is sent, because the inbox has been set not to answer meanwhile (reply_enabled).";
  const sender = {
    from_address: message.sender ?? "",
    authenticated: message.authority !== "unauthenticated",
  };
  return judgeSender(inbox, user, sender).accepted
    ? inbox
    : "No answer is sent, because the inbox takes no mail of its sender any more (allowlist_senders).";
}

/** Why the answer to this message must not go out, or undefined. */
export async function whyWithheld(db: Db, message_id: string): Promise<string | undefined> {
  const [message] = await askedIn(db, { id: message_id });
  const found = message && (await inboxToAnswerFrom(db, message));
  return typeof found === "string" ? found : undefined;
}

const askedIn = prepared((db, key: { id: string }) =>
  db.selectFrom("messages").select(["user_id", "inbox_id", "sender", "authority"]).where("id", "=", key.id),
);

const userById = remembered((db, key: { id: string }) =>
  db.selectFrom("users").selectAll().where("id", "=", key.id),
);
