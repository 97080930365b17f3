import type { App } from "../../app.ts";
import { keepKey, type Keyed } from "../../inbound/same-mail.ts";
import { losesCalls } from "../../resources/messages/inherit-calls.ts";
import { markRedone } from "../../resources/messages/redone.ts";
import { snippetOf } from "../../resources/conversations/snippet.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import { rangesOf, type SegmentRange } from "../../lib/segments.ts";

/** How many messages one step takes: the words of each go from the index one by one, which may take a tenth of a second. */
export const MESSAGES_AT_ONCE = 1;

/** A message to delete. */
export interface Doomed {
  id: string;
  raw_mail_id: string | null;
  conversation_id: string | null;
}

/** A message with what its erasure needs to know. */
export type Erasable = Doomed & Omit<Keyed, "calls_lost">;

/**
 * Deletes messages whose account and inbox stay, and returns the ranges of their bytes in the segments. Keeps what is
 * needed later: the key that recognizes a duplicate mail, the tool calls made for a message, and that a retry did its
 * work.
 */
export async function eraseMessages(app: App, tx: Db, messages: Erasable[]): Promise<SegmentRange[]> {
  const ranges: SegmentRange[] = [];
  // One after the other, because one message may hand over records to the next.
  for (const message of messages) {
    await keepKey(app, tx, { ...message, calls_lost: await losesCalls(tx, message) });
    await markRedone(tx, message);
    ranges.push(...(await deleteMessages(tx, [message])));
  }
  await tidyConversations(tx, messages);
  return ranges;
}

/** Deletes messages with all rows that belong to them. Returns the ranges of their bytes in the segments. */
export async function deleteMessages(tx: Db, messages: Doomed[]): Promise<SegmentRange[]> {
  const ranges: SegmentRange[] = [];
  for (const { id, raw_mail_id } of messages) {
    ranges.push(...(await filesOf(tx, { id })).flatMap(rangesOf));
    await deleteEvents(tx, { id });
    await deleteMessage(tx, { id });
    // A mail to several inboxes is stored once; it is deleted with the last of its messages.
    if (raw_mail_id !== null) ranges.push(...(await deleteUnnamed(tx, { raw_mail_id })).flatMap(rangesOf));
  }
  return ranges;
}

/**
 * Deletes conversations without messages, and sets subject, sender and snippet of the others from the messages that are
 * left.
 */
async function tidyConversations(tx: Db, messages: Doomed[]): Promise<void> {
  const ids = new Set(messages.map(({ conversation_id }) => conversation_id));
  for (const id of ids) {
    if (id === null) continue;
    const [first] = await firstOf(tx, { id });
    if (!first) {
      await deleteConversation(tx, { id });
      continue;
    }
    const [latest] = await latestDone(tx, { id });
    const subject = first.subject ?? "";
    const latest_sender = latest?.sender ?? null;
    await rewrite(tx, { id, subject, latest_sender, snippet: snippetOf(latest?.result ?? "") });
  }
}

const filesOf = prepared((db, key: { id: string }) =>
  db
    .selectFrom("attachments")
    .select(["segment", "segment_offset", "size"])
    .where("message_id", "=", key.id)
    .where("segment", "is not", null),
);

const deleteEvents = prepared((db, key: { id: string }) =>
  db.deleteFrom("events").where("message_id", "=", key.id),
);

const deleteMessage = prepared((db, key: { id: string }) =>
  db.deleteFrom("messages").where("id", "=", key.id),
);

const deleteUnnamed = prepared((db, key: { raw_mail_id: string }) =>
  db
    .deleteFrom("raw_mails")
    .where("id", "=", key.raw_mail_id)
    .where((eb) =>
      eb.not(eb.exists(eb.selectFrom("messages").select("id").where("raw_mail_id", "=", key.raw_mail_id))),
    )
    .returning(["segment", "segment_offset", "size"]),
);

const firstOf = prepared((db, key: { id: string }) =>
  db.selectFrom("messages").select("subject").where("conversation_id", "=", key.id).orderBy("id").limit(1),
);

const latestDone = prepared((db, key: { id: string }) =>
  db
    .selectFrom("messages")
    .select(["sender", "result"])
    .where("conversation_id", "=", key.id)
    .where("state", "=", "done")
    .orderBy("id", "desc")
    .limit(1),
);

const deleteConversation = prepared((db, key: { id: string }) =>
  db.deleteFrom("conversations").where("id", "=", key.id),
);

const rewrite = prepared(
  (db, row: { id: string; subject: string; latest_sender: string | null; snippet: string }) =>
    db
      .updateTable("conversations")
      .set({ subject: row.subject, latest_sender: row.latest_sender, snippet: row.snippet })
      .where("id", "=", row.id),
);
