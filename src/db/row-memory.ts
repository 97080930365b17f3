import type Sqlite from "better-sqlite3";
import type { CompiledQuery } from "kysely";
import type { Schema } from "./schema.ts";
import { watchOthers } from "./watch-others.ts";

/** Tables written all the time. No trigger or foreign key changes another table's rows along with theirs. */
const BUSY_TABLES: (keyof Schema)[] = [
  "account_storage",
  "approvals",
  "replays",
  "attachments",
  "conversations",
  "events",
  "idempotency_keys",
  "indexed_messages",
  "jobs",
  "ledger",
  "mail_keys",
  "message_contents",
  "message_texts",
  "messages",
  "model_costs",
  "outgoing_mails",
  "raw_mails",
  "reply_tokens",
  "schedules",
  "starred_messages",
  "text_slots",
  "tool_calls",
  "undelivered_answers",
  "unindexed_messages",
  "unqueued_messages",
  "webhook_deliveries",
  "written_texts",
];
/** The largest number of cached rows; an empty result counts as one. */
const MAX_ROWS = 10_000;

const KEEPS = new RegExp(
  `^(?:select|begin|savepoint|release|commit)\\b|^(?:insert into|update|delete from) "(?:${BUSY_TABLES.join("|")})"`,
);
const BUSY = new RegExp(`"(?:${BUSY_TABLES.join("|")})"`);

/** The effect of a statement on cached rows. */
export type Effect = "keeps" | "begins" | "forgets";

/**
 * Returns the effect of a statement. Any statement that may change cached rows, or undo such a change, clears the
 * cache. `reads` is true for a statement that only reads.
 */
export function effectOf(text: string, reads: boolean): Effect {
  if (text.startsWith("begin")) return "begins";
  return KEEPS.test(text) || (reads && text.startsWith("with ")) ? "keeps" : "forgets";
}

/** Throws for a query that reads a table written all the time. */
export function checkMemorable(text: string): void {
  const [table] = BUSY.exec(text) ?? [];
  if (table !== undefined) throw new Error(`${table} changes too often to be remembered: ${text}`);
}

type Rows = readonly unknown[];

export interface RowMemory {
  /**
   * Returns the rows of a query, read only if they are not cached. They are frozen, because all callers get the same.
   */
  rows: (query: CompiledQuery, read: () => Rows) => Rows;
  /** Must be called for every statement, and when a snapshot begins. */
  note: (effect: Effect) => void;
}

/** Returns the cache key. Most queries have one string parameter, which is unique without JSON. */
function keyOf(parameters: readonly unknown[]): string {
  const [first] = parameters;
  return parameters.length === 1 && typeof first === "string" ? `=${first}` : JSON.stringify(parameters);
}

/**
 * Caches rows until a statement of this process or a write of another one may have changed them. Looks for the latter
 * once a snapshot.
 */
export function createRowMemory(sqlite: Sqlite.Database): RowMemory {
  const hasChangedElsewhere = watchOthers(sqlite);
  const memory = new Map<string, Map<string, Rows>>();
  let kept = 0;
  let has_looked = false;

  const forget = (): void => {
    memory.clear();
    kept = 0;
  };
  const look = (): void => {
    if (has_looked) return;
    if (hasChangedElsewhere()) forget();
    has_looked = true;
  };
  return {
    rows({ sql, parameters }, read) {
      look();
      const key = keyOf(parameters);
      const known = memory.get(sql)?.get(key);
      if (known) return known;
      const rows = Object.freeze(read().map((row) => Object.freeze(row)));
      kept += Math.max(1, rows.length);
      if (kept > MAX_ROWS) forget();
      const answers = memory.get(sql) ?? new Map<string, Rows>();
      memory.set(sql, answers.set(key, rows));
      return rows;
    },
    note(effect) {
      if (effect === "begins") has_looked = false;
      else if (effect === "forgets") forget();
    },
  };
}
