import type Sqlite from "better-sqlite3";
import { MB } from "../lib/sizes.ts";

/**
 * SQLite's default page size. A database with another one makes the counts below slightly wrong, which does no harm.
 */
const PAGE_BYTES = 4_096;
/**
 * A database up to this size that cannot return free pages yet is rewritten once, at the start; that takes less than a
 * second.
 */
const MAX_REWRITTEN_BYTES = 64 * MB;
/** Pages moved in one transaction. */
const PAGES_AT_ONCE = 64;
/** Pages that stay free for new mail: a file that shrinks and grows all day only wears out the disk. */
const KEPT_PAGES = 1_024;
const KEPT_SHARE = 1 / 32;

const NONE = 0;
const INCREMENTAL = 2;

/** Enables incremental vacuum. The connection must not have written anything yet. */
export function keepPagesMovable(sqlite: Sqlite.Database): void {
  if (numberOf(sqlite, "auto_vacuum") !== NONE) return;
  // The pragma takes effect in an empty database; any other has to be rewritten as a whole.
  sqlite.pragma("auto_vacuum = INCREMENTAL");
  const pages = numberOf(sqlite, "page_count");
  if (pages === 0 || pages * PAGE_BYTES > MAX_REWRITTEN_BYTES) return;
  sqlite.exec("vacuum");
}

/** Returns some free pages to the disk. Returns false when few enough are left, or the database cannot return any. */
export function giveBackPages(sqlite: Sqlite.Database): boolean {
  if (numberOf(sqlite, "auto_vacuum") !== INCREMENTAL || hasSetAside(sqlite)) return false;
  const kept = Math.max(KEPT_PAGES, numberOf(sqlite, "page_count") * KEPT_SHARE);
  if (numberOf(sqlite, "freelist_count") <= kept) return false;
  sqlite.exec(`pragma incremental_vacuum(${PAGES_AT_ONCE})`);
  return true;
}

/** Whether damaged pages have no other use: SQLite cannot move what belongs to them. */
function hasSetAside(sqlite: Sqlite.Database): boolean {
  const query = "select count(*) from sqlite_schema where type = 'index' and tbl_name = 'old_text_index'";
  return (sqlite.prepare(query).pluck().get() as number) > 0;
}

/** The size of a database file. */
export function bytesOf(sqlite: Sqlite.Database): number {
  return numberOf(sqlite, "page_count") * numberOf(sqlite, "page_size");
}

function numberOf(sqlite: Sqlite.Database, pragma: string): number {
  return Number(sqlite.pragma(pragma, { simple: true }));
}
