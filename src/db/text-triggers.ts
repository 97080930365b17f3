import { sql } from "kysely";
import type { Trigger } from "./triggers.ts";

/** Has messages indexed anew. Another turn tells whoever is at it that what was read of them is not valid any more. */
const queue = (messages: ReturnType<typeof sql>) =>
  sql`insert or replace into unindexed_messages (user_id, message_id, turn)
    select user_id, id, coalesce((select turn + 1 from unindexed_messages w
      where w.user_id = m.user_id and w.message_id = m.id), 0)
    from messages m where ${messages} and state <> 'received' and deleted_at is null`;

/** Takes texts out of the index at once, and has indexed what is left of their messages. */
const forget = (messages: ReturnType<typeof sql>) =>
  sql`delete from indexed_messages where message_id in (select id from messages where ${messages});
    ${queue(messages)}`;

const PURGED = "old.purged_at is null and new.purged_at is not null";

/**
 * Triggers by which the words of a message are found for as long as they are kept, and no longer, whoever writes. What is
 * accepted costs nothing here: only what has ended is indexed, later, by `resources/messages/search/keep-indexed.ts`.
 */
export const TEXT_TRIGGERS: Trigger[] = [
  ["text_of_new_message", "after insert on messages when new.state <> 'received'", queue(sql`id = new.id`)],
  [
    "text_of_message",
    `after update of state, subject, sender, instruction, command, result, tags, reason, deleted_at on messages
      when new.state <> 'received' and new.deleted_at is null`,
    queue(sql`id = new.id`),
  ],
  [
    "text_of_no_message",
    "before delete on messages",
    sql`delete from indexed_messages where message_id = old.id;
      delete from unindexed_messages where user_id = old.user_id and message_id = old.id`,
  ],
  [
    "text_of_purged_mail",
    `after update of purged_at on raw_mails when ${PURGED}`,
    forget(sql`raw_mail_id = new.id`),
  ],
  [
    "text_of_purged_content",
    `after update of purged_at on message_contents when ${PURGED}`,
    forget(sql`id = new.message_id`),
  ],
  [
    "text_of_purged_file",
    `after update of purged_at on attachments when ${PURGED}`,
    forget(sql`id = new.message_id`),
  ],
  [
    "text_indexed",
    "after insert on indexed_messages",
    sql`update text_slots set messages = messages + 1 where slot = new.slot`,
  ],
  [
    // The index reads here which words it has to forget, so it does so first.
    "text_forgotten",
    "before delete on indexed_messages",
    sql`delete from message_texts where rowid = old.place;
      update text_slots set messages = messages - 1 where slot = old.slot;
      delete from text_slots where slot = old.slot and messages = 0`,
  ],
];
