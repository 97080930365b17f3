import { rm } from "node:fs/promises";
import type Sqlite from "better-sqlite3";
import { AppError } from "../errors.ts";
import type { SegmentRange } from "../lib/segments.ts";
import { examine, quoted } from "./examine.ts";
import { OF_ONE_ROW } from "./integrity.ts";
import { unknownAmong } from "./migrate.ts";
import { copyUnsynced, openSqlite } from "./open-sqlite.ts";
import { isDamage, StorageError } from "./storage-faults.ts";
import { forgetSetAside, isOfTextIndex, isSetAside, takeOutTextIndex } from "./text-index.ts";

const BUSY_TIMEOUT_MS = 5_000;
const MAX_FAULTS = 5;
const ALL_PAGES = 2 ** 31 - 1;
/** Tables that a restore empties: who was signed in, or about to be, when the backup was made. */
const PASSING_TABLES = ["sessions", "login_codes", "code_askers", "pending_passwords", "oauth_states"];

/**
 * Writes the database as it is at one moment to a new file, on the calling thread. Others can write meanwhile; their
 * commits stay in the log until it ends. SQLite's backup API would begin again at each of their commits. Where the index of words is damaged, the snapshot has none: it is made anew at the first start. `refuseMore` is awaited before
 * that takes room a second time.
 */
export async function takeSnapshot(path: string, to: string, refuseMore: () => Promise<void>): Promise<void> {
  using opened = open(path);
  try {
    return copyUnsynced(opened.sqlite, to);
  } catch (error) {
    if (!isDamage(error)) throw error;
    const { faults, text_index } = examine(opened.sqlite);
    if (faults.length > 0 || !text_index) throw error;
  }
  await refuseMore();
  const whole = `${to}-whole`;
  await rm(to, { force: true });
  // All pages at once, so that no commit has it begin again.
  await opened.sqlite.backup(whole, { progress: () => ALL_PAGES });
  {
    using copy = open(whole);
    takeOutTextIndex(copy.sqlite);
    copyUnsynced(copy.sqlite, to);
  }
  for (const end of ["", "-wal", "-shm"]) await rm(`${whole}${end}`, { force: true });
}

/** A snapshot of the database, and the ranges of segment files that it references. */
export interface Snapshot extends Disposable {
  migrations: string[];
  counts: { accounts: number; inboxes: number; messages: number };
  /** A value that only the right master key opens; null in an old database. */
  key_check: Uint8Array | null;
  /** The segments that rows reference, each with the end of the last range. */
  segments: { segment: number; end: number }[];
  /** Returns the ranges that rows reference in a segment, in order. */
  ranges: (segment: number) => IterableIterator<SegmentRange>;
  /** Bytes that were known to be missing at that moment; `segments` and `ranges` leave them out. */
  lost_bytes: number;
}

export function openSnapshot(path: string): Snapshot {
  const { sqlite, ...opened } = open(path);
  const all = <T>(text: string, ...values: unknown[]) => sqlite.prepare(text).all(...values) as T[];
  const tables = tablesOf(sqlite);
  const count = (table: string) =>
    tables.has(table) ? (sqlite.prepare(`select count(*) from ${table}`).pluck().get() as number) : 0;
  gatherRanges(sqlite, tables);
  return {
    migrations: tables.has("kysely_migration")
      ? all<{ name: string }>("select name from kysely_migration order by name").map(({ name }) => name)
      : [],
    counts: { accounts: count("users"), inboxes: count("inboxes"), messages: count("messages") },
    key_check: tables.has("installation")
      ? ((sqlite.prepare("select value from installation where name = 'key_check'").pluck().get() as
          | Uint8Array
          | undefined) ?? null)
      : null,
    segments: all(
      "select segment, max(start + size) as end from named where lost = 0 group by segment order by segment",
    ),
    lost_bytes: sqlite
      .prepare("select coalesce(sum(size), 0) from named where lost = 1")
      .pluck()
      .get() as number,
    ranges: (segment) =>
      sqlite
        .prepare(
          "select segment, start as offset, size from named where segment = ? and lost = 0 order by start",
        )
        .iterate(segment) as IterableIterator<SegmentRange>,
    [Symbol.dispose]: opened[Symbol.dispose],
  };
}

/**
 * Throws an AppError when a snapshot is damaged or newer than this program. Returns faults of single rows, with which a
 * server runs on: they must not prevent the restore of all others.
 */
export function refuseUnfit(path: string): string[] {
  using opened = open(path);
  const { sqlite } = opened;
  if (!tablesOf(sqlite).has("kysely_migration"))
    throw new AppError(
      "unavailable",
      "The database in this backup is none of Mailwright. Nothing was changed.",
    );
  // The index of words is made anew at the start.
  const damage = examine(sqlite).faults.slice(0, MAX_FAULTS);
  if (damage.length > 0)
    throw new AppError("unavailable", `The database in this backup is damaged: ${damage.join("; ")}.`, {
      fix: "Use an older backup. Nothing was changed.",
    });
  refuseNewer(sqlite.prepare("select name from kysely_migration").pluck().all() as string[]);
  return [...rowFaultsIn(sqlite), ...orphansIn(sqlite)];
}

/**
 * Makes indexes of a snapshot anew that do not lead to all rows: it is nobody's but the backup's. Throws where more is damaged, as
 * such a backup cannot be restored. Faults of single rows stay.
 */
export function mendSnapshot(path: string): void {
  using opened = open(path);
  const { sqlite } = opened;
  forgetSetAside(sqlite);
  const { faults, indexes, lost } = examine(sqlite);
  if (faults.length === 0) return;
  if (lost.length === 0) for (const index of indexes) sqlite.exec(`reindex ${quoted(index)}`);
  const [left] = lost.length > 0 ? lost : examine(sqlite).faults;
  if (left !== undefined) throw new StorageError("SQLITE_CORRUPT", left);
}

/** Returns what is wrong with values of single rows. */
function rowFaultsIn(sqlite: Sqlite.Database): string[] {
  const rows = ordinaryTablesOf(sqlite).flatMap(
    (table) => sqlite.pragma(`integrity_check(${quoted(table)})`) as { integrity_check: string }[],
  );
  return rows.map(({ integrity_check }) => integrity_check).filter((words) => OF_ONE_ROW.test(words));
}

/** All tables but those of the index of words, which is made anew where it is damaged. */
function ordinaryTablesOf(sqlite: Sqlite.Database): string[] {
  return [...tablesOf(sqlite)].filter((table) => !isOfTextIndex(table) && !isSetAside(table));
}

/** Returns one sentence for each table with rows that reference others which do not exist. */
export function orphansIn(sqlite: Sqlite.Database): string[] {
  const orphans = ordinaryTablesOf(sqlite).flatMap(
    (table) => sqlite.pragma(`foreign_key_check(${quoted(table)})`) as { table: string }[],
  );
  const counts = Map.groupBy(orphans, ({ table }) => table);
  return [...counts].map(([table, { length }]) =>
    length === 1
      ? `1 row of ${table} names another that is not there`
      : `${length} rows of ${table} name others that are not there`,
  );
}

export function refuseNewer(applied: string[]): void {
  const unknown = unknownAmong(applied);
  if (unknown.length === 0) return;
  throw new AppError(
    "unavailable",
    `This backup is of a newer Mailwright (it has the migration ${unknown.join(", ")}).`,
    {
      fix: "Restore it with that version or a later one. Nothing was changed.",
    },
  );
}

/** Deletes all sessions: whoever was signed in back then may have been signed out since for a reason. */
export function forgetSignIns(path: string): void {
  using opened = open(path);
  const { sqlite } = opened;
  const tables = tablesOf(sqlite);
  for (const table of PASSING_TABLES) if (tables.has(table)) sqlite.exec(`delete from ${table}`);
  if (tables.has("jobs")) sqlite.exec("delete from jobs where kind = 'mail_code'");
}

/** Collects the ranges in one pass over the tables: they are large, and have no index for it. */
function gatherRanges(sqlite: Sqlite.Database, tables: Set<string>): void {
  sqlite.exec("create temp table named (segment integer, start integer, size integer, lost integer)");
  for (const table of tables) {
    const columns = sqlite.prepare("select name from pragma_table_info(?)").pluck().all(table);
    if (!columns.includes("segment")) continue;
    // The table names come from the archive, so they are quoted.
    const name = quoted(table);
    const lost = columns.includes("lost_at") ? "lost_at is not null" : "0";
    sqlite.exec(`insert into named select segment, segment_offset, size, ${lost} from ${name}
      where segment is not null and segment_offset is not null`);
  }
  sqlite.exec("create index named_start on named (segment, start)");
}

function tablesOf(sqlite: Sqlite.Database): Set<string> {
  return new Set(
    sqlite.prepare("select name from sqlite_schema where type = 'table'").pluck().all() as string[],
  );
}

function open(path: string): { sqlite: Sqlite.Database } & Disposable {
  const sqlite = openSqlite(path, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
  return { sqlite, [Symbol.dispose]: () => void sqlite.close() };
}
