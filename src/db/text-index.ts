import { sql } from "kysely";
import type { Db, Write } from "./group-commit.ts";
import { TEXT_FIELDS } from "./schema.ts";
import { isIndexDamage } from "./storage-faults.ts";
import { createMissing } from "./triggers.ts";
import type { WatchLog } from "./watch.ts";

const INDEX = "message_texts";

/** SQL that makes the index of words and what belongs to it. */
const PARTS = [
  sql`create table text_slots (
    slot integer primary key,
    user_id text not null references users (id) on delete cascade,
    first integer not null,
    last integer not null,
    chars integer not null,
    messages integer not null default 0
  )`,
  sql`create index text_slots_user on text_slots (user_id, last)`,
  sql`create table indexed_messages (
    place integer primary key,
    message_id text not null unique,
    slot integer not null,
    ${sql.join(TEXT_FIELDS.map((name) => sql`${sql.ref(name)} text not null`))}
  )`,
  // Marks belong to letters: those of Thai and of the scripts of India are vowels.
  sql`create virtual table message_texts using fts5 (
    ${sql.join(TEXT_FIELDS.map((name) => sql.ref(name)))},
    content = 'indexed_messages', content_rowid = 'place',
    tokenize = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
  )`,
];

/** Makes the index of words where it is missing, at the first start with it. */
export async function ensureTextIndex(db: Db): Promise<void> {
  const known = db.withTables<{ sqlite_master: { name: string } }>().selectFrom("sqlite_master");
  const there = await known.select("name").where("name", "=", INDEX).executeTakeFirst();
  if (!there) await db.transaction().execute(makeTextIndex);
}

async function makeTextIndex(tx: Db): Promise<void> {
  for (const part of PARTS) await part.execute(tx);
  // Without it, words of what was deleted stay in the file until the index rewrites that part of itself.
  await sql`insert into message_texts (message_texts, rank) values ('secure-delete', 1)`.execute(tx);
}

/** Makes the index of words anew in the open transaction, without any words yet: all messages wait for it again. */
export async function renewTextIndex(tx: Db): Promise<void> {
  for (const table of ["message_texts", "indexed_messages", "text_slots"])
    await sql`drop table if exists ${sql.table(table)}`.execute(tx);
  await makeTextIndex(tx);
  await createMissing(tx);
  await sql`insert or ignore into unindexed_messages (user_id, message_id)
    select user_id, id from messages where state <> 'received'`.execute(tx);
}

/** Writes that have an index of words that is damaged made anew, and then repeat what failed for that. */
export function keepTextIndex(
  commit: Write,
  log: Pick<WatchLog, "error">,
): { write: Write; renew: () => Promise<void> } {
  let renewal: Promise<void> | undefined;
  const renewOnce = async (): Promise<void> => {
    await commit(renewTextIndex);
    log.error({}, "the index of words was damaged; it is being made anew, and nothing is lost");
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
  return table.startsWith(`${INDEX}_`);
}

/** Whether what SQLite finds wrong is the index of words. */
export function isTextIndexFault(fault: string): boolean {
  return fault.includes("FTS5 table") && fault.includes(INDEX);
}
