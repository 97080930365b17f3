import { sql } from "kysely";
import type { Schema } from "./schema.ts";

/** Tables whose rows lose most of what is in them and stay. */
type Shrinking = keyof Schema & ("attachments" | "message_contents" | "outgoing_mails" | "raw_mails");

/**
 * Goes into the `set` of an update that takes most of one row away. SQLite leaves a row that got smaller where it was,
 * if need be alone in its page; moved behind all others of its table it shares a page, and its own is given back.
 */
export function packed(table: Shrinking): object {
  return { rowid: sql`(select max(rowid) + 1 from ${sql.table(table)})` };
}
