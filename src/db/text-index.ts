import type Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { messageOf } from "../errors.ts";
import type { Db, Write } from "./group-commit.ts";
import { leavesRoom } from "./reserve.ts";
import { TEXT_FIELDS } from "./schema.ts";
import { bytesOf } from "./free-pages.ts";
import { isDamage, isIndexDamage } from "./storage-faults.ts";
import { TEXT_TRIGGERS } from "./text-triggers.ts";
import { createThose } from "./triggers.ts";
import type { WatchLog } from "./watch.ts";

const INDEX = "message_texts";
/** An empty table that has the b-trees of damaged indexes of words as its own indexes. */
const SET_ASIDE = "old_text_index";
/** All that is made of messages, and made anew where any of it is damaged. */
const TABLES = [INDEX, "indexed_messages", "text_slots", "unindexed_messages", "unqueued_messages"];

/** Comes behind every id. */
const ALL = "~";
/** Up to this size a database is written anew with its index, so that what was damaged takes no room: some tenths of a second. */
const WRITTEN_ANEW_BYTES = 32 * 1_048_576;

/** SQL that makes the index of words and what belongs to it. */
const PARTS: [name: string, making: ReturnType<typeof sql>][] = [
  [SET_ASIDE, sql`create table old_text_index (word)`],
  [
    "text_slots",
    sql`create table text_slots (
      slot integer primary key,
      user_id text not null references users (id) on delete cascade,
      first integer not null,
      last integer not null,
      chars integer not null,
      messages integer not null default 0
    )`,
  ],
  ["text_slots_user", sql`create index text_slots_user on text_slots (user_id, last)`],
  [
    "indexed_messages",
    sql`create table indexed_messages (
      place integer primary key,
      message_id text not null unique,
      slot integer not null,
      ${sql.join(TEXT_FIELDS.map((name) => sql`${sql.ref(name)} text not null`))}
    )`,
  ],
  [
    INDEX,
    // Marks belong to letters: those of Thai and of the scripts of India are vowels.
    sql`create virtual table message_texts using fts5 (
      ${sql.join(TEXT_FIELDS.map((name) => sql.ref(name)))},
      content = 'indexed_messages', content_rowid = 'place',
      tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
    )`,
  ],
  [
    "unindexed_messages",
    sql`create table unindexed_messages (
      user_id text not null references users (id) on delete cascade,
      message_id text not null,
      turn integer not null default 0,
      primary key (user_id, message_id)
    ) without rowid`,
  ],
  ["unqueued_messages", sql`create table unqueued_messages (below text primary key) without rowid`],
];

/**
 * Makes what is missing of the index of words. All messages wait for one that is made anew: they are put into its queue bit by
 * bit (`resources/messages/search/keep-indexed.ts`).
 */
export async function ensureTextIndex(db: Db): Promise<void> {
  const there = await namesIn(db);
  if (PARTS.some(([name]) => !there.has(name))) await db.transaction().execute(makeTextIndex);
}

async function makeTextIndex(tx: Db): Promise<void> {
  const there = await namesIn(tx);
  for (const [name, making] of PARTS) if (!there.has(name)) await making.execute(tx);
  // Without it, words of what was deleted stay in the file until the index rewrites that part of itself.
  if (!there.has(INDEX))
    await sql`insert into message_texts (message_texts, rank) values ('secure-delete', 1)`.execute(tx);
  if (!there.has("unindexed_messages"))
    await tx.insertInto("unqueued_messages").values({ below: ALL }).execute();
}

async function namesIn(db: Db): Promise<Set<string>> {
  const known = db.withTables<{ sqlite_master: { name: string } }>().selectFrom("sqlite_master");
  return new Set((await known.select("name").execute()).map(({ name }) => name));
}

const OURS = `(tbl_name in (${TABLES.map((name) => `'${name}'`).join(", ")}) or tbl_name glob '${INDEX}_*')`;

/**
 * Takes the index of words and its triggers out of the schema, in the open transaction, without a look at a page of it: to
 * delete a damaged table, SQLite would have to walk it. Its b-trees become indexes of an empty table, so their pages have an
 * owner, nothing reads them, and `vacuum` makes these indexes anew from that table, which frees them all.
 */
function setAside(sqlite: Sqlite.Database): void {
  sqlite.exec(`create table if not exists ${SET_ASIDE} (word)`);
  const roots = sqlite
    .prepare(`select rootpage from sqlite_schema where rootpage > 0 and ${OURS}`)
    .pluck()
    .all() as number[];
  const before = sqlite
    .prepare("select count(*) from sqlite_schema where tbl_name = ?")
    .pluck()
    .get(SET_ASIDE) as number;
  changeSchema(sqlite, () => {
    sqlite.exec(FORGET);
    const put = sqlite.prepare(
      "insert into sqlite_schema (type, name, tbl_name, rootpage, sql) values ('index', ?, ?, ?, ?)",
    );
    for (const [at, root] of roots.entries()) {
      const name = `${SET_ASIDE}_${before + at}`;
      put.run(name, SET_ASIDE, root, `CREATE INDEX ${name} on ${SET_ASIDE} (word)`);
    }
  });
}

/** Forgets what was damaged of earlier indexes of words, once the database was written anew, and so without it. */
export function forgetSetAside(sqlite: Sqlite.Database): void {
  const query = "select name from sqlite_schema where type = 'index' and tbl_name = ?";
  for (const name of sqlite.prepare(query).pluck().all(SET_ASIDE))
    sqlite.exec(`drop index "${String(name)}"`);
}

/** Takes the index of words out of the schema of a copy that is written anew then: nothing uses its pages any more. */
export function takeOutTextIndex(sqlite: Sqlite.Database): void {
  changeSchema(sqlite, () => sqlite.exec(FORGET));
}

function changeSchema(sqlite: Sqlite.Database, change: () => void): void {
  sqlite.unsafeMode(true);
  try {
    sqlite.pragma("writable_schema = on");
    change();
    // Every connection reads the schema anew then, and this one as well.
    sqlite.pragma(`schema_version = ${Number(sqlite.pragma("schema_version", { simple: true })) + 1}`);
  } finally {
    sqlite.pragma("writable_schema = off");
    sqlite.unsafeMode(false);
  }
}

const FORGET = `delete from sqlite_schema where ${OURS}
  or (type = 'trigger' and name in (${TEXT_TRIGGERS.map(([name]) => `'${name}'`).join(", ")}))`;

interface Keeping {
  sqlite: Sqlite.Database;
  /** Null for a database in memory. */
  dir: string | null;
  log: Pick<WatchLog, "error">;
  /** Ends the reading that is under way on the connection. */
  endReads: () => void;
}

/** Writes that have an index of words that is damaged made anew, and then repeat what failed for that. */
export function keepTextIndex(
  commit: Write,
  { sqlite, dir, log, endReads }: Keeping,
): { write: Write; renew: () => Promise<void> } {
  let renewal: Promise<void> | undefined;
  // Before an upgrade, tables of other triggers are still to come.
  const make = (tx: Db) => makeTextIndex(tx).then(() => createThose(tx, TEXT_TRIGGERS));
  /** False where a new table would have to lie where pages of the damaged ones are, and cannot move them. */
  const isMade = async (making: (tx: Db) => Promise<void>): Promise<boolean> => {
    try {
      await commit(making);
      return true;
    } catch (error) {
      if (!isDamage(error) && !isIndexDamage(error)) throw error;
      log.error({ problem: messageOf(error) }, "the index of words could not be made anew yet");
      return false;
    }
  };
  const renewOnce = async (): Promise<void> => {
    log.error({}, "the index of words was damaged; it is being made anew, and nothing is lost");
    const is_made = await isMade(async (tx) => {
      setAside(sqlite);
      await make(tx);
    });
    if (!is_made) await commit(async () => setAside(sqlite));
    const is_free = await isWrittenAnew();
    if (!is_made && is_free) await isMade(make);
  };
  const isWrittenAnew = async (): Promise<boolean> => {
    const bytes = bytesOf(sqlite);
    if (dir === null || bytes > WRITTEN_ANEW_BYTES || !(await leavesRoom(dir, 2 * bytes))) return false;
    try {
      // It is not possible in a transaction, nor beside one.
      await commit(() => Promise.resolve());
      endReads();
      sqlite.exec("vacuum");
      await commit(async () => forgetSetAside(sqlite));
      return true;
    } catch (error) {
      log.error({ problem: messageOf(error) }, "what was damaged of the index of words still takes room");
      return false;
    }
  };
  const renew = () => (renewal ??= renewOnce().finally(() => (renewal = undefined)));
  const write: Write = async (operation, options) => {
    try {
      return await commit(operation, options);
    } catch (error) {
      if (!isIndexDamage(error)) throw error;
      await renew();
      return commit(operation, options);
    }
  };
  return { write, renew };
}

/** Whether a table is one of those in which SQLite keeps the index of words. */
export function isOfTextIndex(table: string): boolean {
  return TABLES.includes(table) || table.startsWith(`${INDEX}_`);
}

/** Whether a table has what was damaged of earlier indexes of words. */
export function isSetAside(table: string): boolean {
  return table === SET_ASIDE;
}

const NAMES = new RegExp(`\\b(?:${TABLES.join("|")})\\b`);

/** Whether a statement reads and writes the index of words alone, so that what is damaged for it is the index. */
export function isForTextIndex(statement: string): boolean {
  return NAMES.test(statement) && !statement.includes('"messages"');
}
