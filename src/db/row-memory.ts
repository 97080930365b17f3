import type Sqlite from "better-sqlite3";
import type { CompiledQuery } from "kysely";
import type { Schema } from "./schema.ts";
import { watchOthers } from "./watch-others.ts";

/** Written all the time, and no row of another table goes or changes with one of theirs. */
const BUSY_TABLES: (keyof Schema)[] = [
  "account_storage",
  "attachments",
  "conversations",
  "events",
  "idempotency_keys",
  "jobs",
  "ledger",
  "mail_keys",
  "message_contents",
  "messages",
  "outgoing_mails",
  "raw_mails",
  "reply_tokens",
  "tool_calls",
  "undelivered_answers",
  "webhook_deliveries",
];
/** Rows of all answers together; an answer without any counts as one. */
const MAX_ROWS = 10_000;

const KEEPS = new RegExp(
  `^(?:select|begin|savepoint|release|commit)\\b|^(?:insert into|update|delete from) "(?:${BUSY_TABLES.join("|")})"`,
);
const BUSY = new RegExp(`"(?:${BUSY_TABLES.join("|")})"`);

/** What a statement means for the rows that are remembered. */
export type Effect = "keeps" | "begins" | "forgets";

/** Whatever may change rows that are remembered, or undo such a change, forgets them all. `reads`: the statement only reads. */
export function effectOf(text: string, reads: boolean): Effect {
  if (text.startsWith("begin")) return "begins";
  return KEEPS.test(text) || (reads && text.startsWith("with ")) ? "keeps" : "forgets";
}

/** Throws for a query that reads what is written all the time. */
export function checkMemorable(text: string): void {
  const [table] = BUSY.exec(text) ?? [];
  if (table !== undefined) throw new Error(`${table} changes too often to be remembered: ${text}`);
}

type Rows = readonly unknown[];

export interface RowMemory {
  /** The rows of a query, read only if they are not known. They are frozen, because all who ask get the same. */
  rows: (query: CompiledQuery, read: () => Rows) => Rows;
  /** To be told of every statement, and of a snapshot that begins before one. */
  note: (effect: Effect) => void;
}

/** Most queries ask by one text, which needs no JSON to be told from any other. */
function keyOf(parameters: readonly unknown[]): string {
  const [first] = parameters;
  return parameters.length === 1 && typeof first === "string" ? `=${first}` : JSON.stringify(parameters);
}

/** Remembers rows until a statement, or another process, may have changed them; the latter is looked for once a snapshot. */
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
