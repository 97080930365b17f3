import type Sqlite from "better-sqlite3";

/** The usual size of a page; with another one the counts are only a little off. */
const PAGE_BYTES = 4_096;
/** A database up to this size is written anew once, at its start, if its pages cannot be given back yet: it takes less than a second. */
const MAX_REWRITTEN_BYTES = 64 * 1024 * 1024;
/** Moved at a time. */
const PAGES_AT_ONCE = 64;
/** Pages that stay free for the mail to come: a file that shrinks and grows all day only wears out the disk. */
const KEPT_PAGES = 1_024;
const KEPT_SHARE = 1 / 32;

const NONE = 0;
const INCREMENTAL = 2;

/** Lets free pages be given back to the disk; for a connection that has not written anything yet. */
export function keepPagesMovable(sqlite: Sqlite.Database): void {
  if (numberOf(sqlite, "auto_vacuum") !== NONE) return;
  // An empty database needs no more than this; in another it means nothing until the whole file is written anew.
  sqlite.pragma("auto_vacuum = INCREMENTAL");
  const pages = numberOf(sqlite, "page_count");
  if (pages === 0 || pages * PAGE_BYTES > MAX_REWRITTEN_BYTES) return;
  sqlite.exec("vacuum");
}

/** False when there is little enough left, or nothing can be done. */
export function giveBackPages(sqlite: Sqlite.Database): boolean {
  if (numberOf(sqlite, "auto_vacuum") !== INCREMENTAL) return false;
  const kept = Math.max(KEPT_PAGES, numberOf(sqlite, "page_count") * KEPT_SHARE);
  if (numberOf(sqlite, "freelist_count") <= kept) return false;
  sqlite.exec(`pragma incremental_vacuum(${PAGES_AT_ONCE})`);
  return true;
}

function numberOf(sqlite: Sqlite.Database, pragma: string): number {
  return Number(sqlite.pragma(pragma, { simple: true }));
}
