import { sql } from "kysely";
import { WRITTEN_TEXT_BYTES } from "./stored-sum.ts";
import type { Trigger } from "./triggers.ts";

const text = (row: string) =>
  sql.raw(
    ["instruction", "command", "result", "steps"]
      .map((column) => `coalesce(octet_length(${row}.${column}), 0)`)
      .join(" + "),
  );

const add = (user: string, bytes: ReturnType<typeof sql>) =>
  sql`update account_storage set bytes = bytes + (${bytes}) where user_id = ${sql.raw(user)}`;

const ownerOf = (message: string) => `(select user_id from messages where id = ${message})`;

/**
 * The bytes that a message's raw mail adds to its account: none if another of its messages references the same mail.
 */
const rawMail = (row: string) =>
  sql.raw(`coalesce((select r.size from raw_mails r where r.id = ${row}.raw_mail_id and r.purged_at is null
    and not exists (select 1 from messages m
      where m.raw_mail_id = r.id and m.user_id = ${row}.user_id and m.id <> ${row}.id)), 0)`);

/**
 * Triggers that count in `account_storage` what each account stores, in the commit that writes, whoever writes. Rows
 * deleted along with a message are counted before it goes, because afterwards their owner is unknown.
 */
export const STORAGE_TRIGGERS: Trigger[] = [
  [
    "storage_of_user",
    "after insert on users",
    sql`insert into account_storage (user_id, bytes, counted_at) values (new.id, 0, 0)`,
  ],
  [
    "storage_message_insert",
    "after insert on messages",
    add("new.user_id", sql`${text("new")} + ${rawMail("new")}`),
  ],
  [
    "storage_message_update",
    "after update of instruction, command, result, steps on messages",
    add("new.user_id", sql`${text("new")} - (${text("old")})`),
  ],
  [
    "storage_message_delete",
    "before delete on messages",
    add(
      "old.user_id",
      sql`- (${text("old")} + ${rawMail("old")}
        + coalesce((select octet_length(content) from message_contents where message_id = old.id), 0)
        + coalesce((select sum(size) from attachments where message_id = old.id and purged_at is null), 0))`,
    ),
  ],
  [
    "storage_metadata_insert",
    "after insert on messages when new.metadata <> '{}'",
    add("new.user_id", sql`octet_length(new.metadata)`),
  ],
  [
    "storage_metadata_delete",
    "before delete on messages when old.metadata <> '{}'",
    add("old.user_id", sql`- octet_length(old.metadata)`),
  ],
  [
    "storage_mail_purge",
    "after update of purged_at on raw_mails when old.purged_at is null and new.purged_at is not null",
    sql`update account_storage set bytes = bytes - old.size
      where user_id in (select user_id from messages where raw_mail_id = old.id)`,
  ],
  [
    "storage_content_insert",
    "after insert on message_contents when new.content is not null",
    add(ownerOf("new.message_id"), sql`octet_length(new.content)`),
  ],
  [
    "storage_content_update",
    "after update of content on message_contents",
    add(
      ownerOf("new.message_id"),
      sql`coalesce(octet_length(new.content), 0) - coalesce(octet_length(old.content), 0)`,
    ),
  ],
  [
    "storage_file_insert",
    "after insert on attachments when new.purged_at is null",
    add(ownerOf("new.message_id"), sql`new.size`),
  ],
  [
    "storage_file_purge",
    "after update of purged_at on attachments when old.purged_at is null and new.purged_at is not null",
    add(ownerOf("new.message_id"), sql`- old.size`),
  ],
  [
    "storage_outgoing_insert",
    "after insert on outgoing_mails when new.raw is not null",
    add("new.user_id", sql`octet_length(new.raw)`),
  ],
  [
    "storage_outgoing_update",
    "after update of raw on outgoing_mails",
    add("new.user_id", sql`coalesce(octet_length(new.raw), 0) - coalesce(octet_length(old.raw), 0)`),
  ],
  [
    "storage_outgoing_delete",
    "after delete on outgoing_mails when old.raw is not null",
    add("old.user_id", sql`- octet_length(old.raw)`),
  ],
  ["storage_context_insert", "after insert on contexts", add("new.user_id", sql`octet_length(new.body)`)],
  [
    "storage_context_update",
    "after update of body on contexts",
    add("new.user_id", sql`octet_length(new.body) - octet_length(old.body)`),
  ],
  ["storage_event_insert", "after insert on events", add("new.user_id", sql`octet_length(new.body)`)],
  ["storage_event_delete", "after delete on events", add("old.user_id", sql`- octet_length(old.body)`)],
  ["storage_context_delete", "after delete on contexts", add("old.user_id", sql`- octet_length(old.body)`)],
  [
    "storage_context_version_insert",
    "after insert on context_versions",
    add("new.user_id", sql`octet_length(new.body)`),
  ],
  [
    "storage_context_version_delete",
    "after delete on context_versions",
    add("old.user_id", sql`- octet_length(old.body)`),
  ],
  [
    "storage_replay_insert",
    "after insert on replays",
    add(
      "new.user_id",
      sql`octet_length(new.asked) + octet_length(new.result) + octet_length(new.steps)
        + coalesce(octet_length(new.expected), 0) + coalesce(octet_length(new.differs), 0)`,
    ),
  ],
  [
    "storage_replay_update",
    "after update of result, steps, differs on replays",
    add(
      "new.user_id",
      sql`octet_length(new.result) + octet_length(new.steps) - octet_length(old.result) - octet_length(old.steps)
        + coalesce(octet_length(new.differs), 0) - coalesce(octet_length(old.differs), 0)`,
    ),
  ],
  [
    "storage_replay_delete",
    "after delete on replays",
    add(
      "old.user_id",
      sql`- octet_length(old.asked) - octet_length(old.result) - octet_length(old.steps)
        - coalesce(octet_length(old.expected), 0) - coalesce(octet_length(old.differs), 0)`,
    ),
  ],
  [
    "storage_star_insert",
    "after insert on starred_messages",
    add("new.user_id", sql`octet_length(new.expected)`),
  ],
  [
    "storage_star_update",
    "after update of expected on starred_messages",
    add("new.user_id", sql`octet_length(new.expected) - octet_length(old.expected)`),
  ],
  [
    "storage_star_delete",
    "after delete on starred_messages",
    add("old.user_id", sql`- octet_length(old.expected)`),
  ],
  ["storage_test_run_insert", "after insert on test_runs", add("new.user_id", sql`octet_length(new.asked)`)],
  [
    "storage_test_run_delete",
    "after delete on test_runs",
    add("old.user_id", sql`- octet_length(old.asked)`),
  ],
  [
    "storage_written_insert",
    "after insert on written_texts",
    add("new.user_id", sql.raw(String(WRITTEN_TEXT_BYTES))),
  ],
  [
    "storage_written_delete",
    "after delete on written_texts",
    add("old.user_id", sql.raw(String(-WRITTEN_TEXT_BYTES))),
  ],
  [
    "storage_approval_insert",
    "after insert on approvals",
    add(
      "new.user_id",
      sql`octet_length(new.arguments) + coalesce(octet_length(new.shown), 0)
        + coalesce(octet_length(new.changes), 0) + coalesce(octet_length(new.outcome), 0)`,
    ),
  ],
  [
    "storage_approval_update",
    "after update of arguments, outcome on approvals",
    add(
      "new.user_id",
      sql`octet_length(new.arguments) - octet_length(old.arguments)
        + coalesce(octet_length(new.outcome), 0) - coalesce(octet_length(old.outcome), 0)`,
    ),
  ],
  [
    "storage_approval_delete",
    "after delete on approvals",
    add(
      "old.user_id",
      sql`- octet_length(old.arguments) - coalesce(octet_length(old.shown), 0)
        - coalesce(octet_length(old.changes), 0) - coalesce(octet_length(old.outcome), 0)`,
    ),
  ],
];
