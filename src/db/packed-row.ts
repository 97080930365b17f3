import { sql } from "kysely";
import type { Schema } from "./schema.ts";

/** Tables whose rows stay after most of their content was removed. */
type Shrinking = keyof Schema & ("attachments" | "message_contents" | "outgoing_mails" | "raw_mails");

/**
 * Returns an assignment for the `set` of an update that removes most of a row. SQLite leaves a row that shrank in
 * place, maybe alone on its page; with a new rowid it moves behind the others of its table and shares a page, and its
 * old page becomes free.
 */
export function packed(table: Shrinking): object {
  return { rowid: sql`(select max(rowid) + 1 from ${sql.table(table)})` };
}
