import Sqlite from "better-sqlite3";

/** Messages of a conversation. */
export const TURNS = 4;
/** Characters of each message's result. */
export const RESULT_CHARS = 300;
const SENDER = "ada@client.example";
const FIRST_MOMENT_MS = Date.UTC(2026, 0, 1);

/** UUIDv7 of a second of its own for each number. */
const uuid = (number: string, kind: number) =>
  `printf('%08x-%04x-7%03x-8000-${kind}%011x', (@first_ms + ${number} * 1000) >> 16, (@first_ms + ${number} * 1000) & 65535, 0, ${number})`;
const numbers = (last: string) =>
  `with recursive numbers(n) as (select 0 union all select n + 1 from numbers where n + 1 < ${last})`;
const second = "@first_ms / 1000 + n";

const CONVERSATIONS = `
  insert into conversations (id, user_id, subject, turn_count, latest_sender, snippet, last_at, created)
  ${numbers("@messages / @turns")}
  select ${uuid("n", 1)}, @user_id, 'Thread ' || n, @turns, '${SENDER}', substr(hex(zeroblob(100)), 1, 200),
    ${second} * @turns, ${second} * @turns from numbers`;

const MESSAGES = `
  insert into messages (id, user_id, conversation_id, source, state, authority, sender, subject, instruction, command,
    result, input_tokens, output_tokens, model, credits_charged, created, accepted_ms, completed, duration_ms)
  ${numbers("@messages")}
  select ${uuid("n", 2)}, @user_id, ${uuid("(n / @turns)", 1)}, case n % 2 when 0 then 'email' else 'api' end,
    case n % 20 when 0 then 'failed' when 1 then 'failed' when 2 then 'rejected' when 3 then 'skipped' else 'done' end,
    'owner', '${SENDER}', 'Message ' || n, 'Sum it up',
    '{"target":null,"command":"Sum it up","options":{},"contexts":[],"tags":[],"macro":null,"raw":"Sum it up"}',
    substr(hex(zeroblob(@chars)), 1, @chars), 100, 100, 'demo', 1, ${second}, (${second}) * 1000, ${second}, 1000
  from numbers`;

const FILES = `
  insert into attachments (id, message_id, direction, filename, content_type, size, created, bytes)
  ${numbers("@messages / 20")}
  select ${uuid("n", 3)}, ${uuid("(n * 20)", 2)}, 'out', 'result.csv', 'text/csv', 100, ${second}, zeroblob(100)
  from numbers`;

/** Stores messages of an account, one for each second. Without a sync: nobody's mail is at stake here. */
export function fillArchive(
  path: string,
  rows: { user_id: string; messages: number; first_ms?: number },
): void {
  const sqlite = new Sqlite(path);
  sqlite.pragma("synchronous = OFF");
  sqlite.pragma("foreign_keys = OFF");
  sqlite.pragma("cache_size = -200000");
  const values = { first_ms: FIRST_MOMENT_MS, ...rows, turns: TURNS, chars: RESULT_CHARS };
  sqlite.transaction(() => {
    for (const statement of [CONVERSATIONS, MESSAGES, FILES]) sqlite.prepare(statement).run(values);
  })();
  sqlite.pragma("wal_checkpoint(truncate)");
  sqlite.close();
}

export function sqliteVersion(): string {
  const sqlite = new Sqlite(":memory:");
  const { version } = sqlite.prepare("select sqlite_version() as version").get() as { version: string };
  sqlite.close();
  return version;
}
