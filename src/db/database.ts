import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { databasePath, namedPath } from "./database-path.ts";
import { createLog } from "../lib/log.ts";
import { bringBack } from "./bring-back.ts";
import { BUSY_TIMEOUT_MS, cutLog } from "./cut-log.ts";
import { startCheckpoints } from "./checkpoint.ts";
import { openKysely } from "./dialect.ts";
import { giveBackPages, keepPagesMovable } from "./free-pages.ts";
import { afterLongBytes, type Keep } from "./long-bytes.ts";
import { type Db, groupCommit, type Write } from "./group-commit.ts";
import { createLookThrough, type Looked } from "./look-through.ts";
import { openSqlite } from "./open-sqlite.ts";
import { createSyncRule } from "./sync-rule.ts";
import type { Schema } from "./schema.ts";
import { storedLossWarning, lostPages, recordLoss, readLogEnd } from "./lost-commits.ts";
import { shareReads } from "./shared-read.ts";
import { isDamage, isIndexDamage, isStorageFault, noteIndexDamage } from "./storage-faults.ts";
import { createSyncSpeed } from "./sync-speed.ts";
import { isForTextIndex, keepTextIndex } from "./text-index.ts";
import { watchOthers } from "./watch-others.ts";
import { type StorageWatch, type WatchLog, watchStorage } from "./watch.ts";

export { afterCommit, apart, unlessCommitted } from "./group-commit.ts";
export type { Db, Write, WriteOptions } from "./group-commit.ts";

/** How long opening may block this thread while another process recovers the log or switches the journal mode. */
const OPENING_MS = 5_000;

export interface Database extends AsyncDisposable {
  db: Db;
  write: Write;
  upkeep: Upkeep;
}

/** What maintains a database, apart from reading and writing it. */
export interface Upkeep {
  /** Returns whether another process has written since the last call. */
  changedElsewhere: () => boolean;
  /**
   * Ends the snapshot that the reads of this tick share, so that a request that just arrived sees all that has been
   * written by now.
   */
  readAnew: () => void;
  /**
   * Copies the write-ahead log back and truncates it, so that nothing deleted can be read in it. Throws while another
   * process or thread uses the log.
   */
  emptyLog: () => Promise<void>;
  /**
   * Resolves once a long log has been copied back. Bulk writers wait for it, so that the log does not grow without end.
   */
  copyLogBack: () => Promise<void>;
  /**
   * Returns some of the pages that deletions freed to the disk, in the open transaction. Returns false when few are
   * left.
   */
  giveBackSpace: () => boolean;
  /** Looks through the whole database; see `createLookThrough`. */
  lookThrough: () => Promise<Looked>;
  /** Makes the index of words anew, which was found damaged. Several calls at once do so once. */
  renewIndex: () => Promise<void>;
  /** Returns a warning about slow commits; undefined while they are fast. */
  slowDisk: () => string | undefined;
  /** Returns a warning about commits that the disk has lost; undefined where none are known. */
  lostCommits: () => string | undefined;
}

interface OpenOptions {
  /** Receives faults of the disk, and background work that failed and will be tried again. */
  log?: WatchLog;
  /** Throws where nothing may be committed. */
  beforeCommit?: () => Promise<void>;
  /** Writes long bytes for a transaction; without it they are kept in their rows. */
  keep?: Keep;
  /**
   * True for the process that holds the data folder. It notes at the start what the log has lost, and writes a database
   * that was deleted meanwhile back at the end. Any other process calls `lookForLoss` first: if it is the last to
   * close, SQLite copies the log back, and the evidence of a loss is gone.
   */
  bring_back?: boolean;
  /** The content of a database in memory, as the bytes of a database file. */
  image?: Buffer;
}

/** Opens `sqlite:<path>` or `sqlite::memory:`, and creates it if absent. `migrateToLatest` runs the migrations. */
export function openDatabase(
  url: string,
  { log = createLog({ level: "warn", format: "text", aside: true }), ...options }: OpenOptions = {},
): Database {
  const path = databasePath(url);
  const inMemory = path === ":memory:";
  if (!inMemory) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const logEnd = options.bring_back === true && !inMemory ? readLogEnd(path) : undefined;
  const sqlite = openFile(inMemory && options.image ? options.image : path);
  const unnoted = recordLoss(path, lostPages(sqlite, logEnd), log);
  const reads = shareReads(sqlite);
  const watch = watchStorage(inMemory ? null : path, log, {
    named: inMemory ? null : resolve(namedPath(url)),
    mend: () => upkeep.lookThrough(),
  });
  const speed = createSyncSpeed(log);
  const syncs = createSyncRule(sqlite, { reads, speed });
  const db = openKysely<Schema>(sqlite, { reads, onError: toldTo(watch), onWrite: syncs.wrote });
  const commit = groupCommit(db, { beforeCommit: checkedFirst(watch, options), ...syncs });
  const checkpoints = inMemory ? undefined : startCheckpoints(sqlite, path, { reads, warn: warning(log) });
  const parts = { sqlite, log, endReads: () => reads.end() };
  const index = keepTextIndex(commit, { ...parts, dir: inMemory ? null : dirname(path) });
  const write = watched(afterLongBytes(index.write, options.keep), watch, () => checkpoints?.afterCommit());
  const upkeep: Upkeep = {
    changedElsewhere: asFarAsKnown(watchOthers(sqlite)),
    readAnew: () => reads.end(),
    async emptyLog() {
      // The checkpoint thread copies most of the log without blocking anybody.
      await checkpoints?.settled();
      // Waits for the pending commits: a log cannot be truncated inside of a transaction.
      await write(() => Promise.resolve());
      reads.end();
      if (!cutLog(sqlite)) throw new Error("The database log is in use and could not be emptied");
    },
    copyLogBack: async () => checkpoints?.settled(),
    giveBackSpace: () => giveBackPages(sqlite),
    lookThrough: createLookThrough({ ...parts, path, write: commit, watch, renewIndex: index.renew }),
    renewIndex: index.renew,
    slowDisk: speed.warning,
    lostCommits: () => (inMemory ? undefined : (unnoted ?? storedLossWarning(path))),
  };
  return {
    db,
    write,
    upkeep,
    async [Symbol.asyncDispose]() {
      try {
        // Operations that came earlier are committed before the database closes.
        await write(() => Promise.resolve());
      } catch (error) {
        // A disk that cannot be written must not prevent a stop: what was committed is safe.
        if (!isStorageFault(error)) throw error;
      } finally {
        await checkpoints?.[Symbol.asyncDispose]();
        reads.end();
        if (options.bring_back === true && watch.isMissing()) bringBack(sqlite, path, log);
        await db.destroy();
      }
    },
  };
}

function checkedFirst(watch: StorageWatch, { beforeCommit }: OpenOptions): () => Promise<void> {
  return async () => {
    watch.refuseIfGone();
    await beforeCommit?.();
  };
}

/** Tells of every error of a statement; what is damaged of the index of words alone is made anew elsewhere. */
function toldTo(watch: StorageWatch): (error: unknown, statement: string) => void {
  return (error, statement) => {
    if (isForTextIndex(statement)) noteIndexDamage(error);
    if (!isIndexDamage(error)) watch.failed(error);
  };
}

function warning(log: WatchLog): (problem: string) => void {
  return (problem) => log.warn({ problem }, "the database log cannot be copied back yet; trying again");
}

/** Opens a database with the settings that durable commits and real deletion depend on. */
function openFile(place: string | Buffer): Sqlite.Database {
  const sqlite = openSqlite(place, { timeout: OPENING_MS });
  if (typeof place === "string" && place !== ":memory:") movePagesIfPossible(sqlite);
  sqlite.pragma("journal_mode = WAL");
  sqlite.pragma("foreign_keys = ON");
  sqlite.pragma("secure_delete = ON");
  // SQLite writes the pages that a savepoint may restore to a temporary file by default.
  sqlite.pragma("temp_store = MEMORY");
  sqlite.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return sqlite;
}

/** Returns false where `hasChanged` throws: the next read or write reports the fault. */
function asFarAsKnown(hasChanged: () => boolean): () => boolean {
  return () => {
    try {
      return hasChanged();
    } catch (error) {
      if (error instanceof Sqlite.SqliteError) return false;
      throw error;
    }
  };
}

function watched(commit: Write, watch: StorageWatch, afterCommit: () => void): Write {
  return async (operation, options) => {
    try {
      watch.refuseIfDamaged();
      const value = await commit(operation, options);
      watch.wrote();
      return value;
    } catch (error) {
      watch.failed(error);
      throw error;
    } finally {
      afterCommit();
    }
  };
}

/**
 * Enables returning free pages to the disk. A full disk or another writer defers that to the next start; nothing
 * depends on it.
 */
function movePagesIfPossible(sqlite: Sqlite.Database): void {
  try {
    keepPagesMovable(sqlite);
  } catch (error) {
    if (isDamage(error) || !isStorageFault(error)) throw error;
  }
}

/** Returns whether a write failed because a row that it references does not exist. */
export function isMissingParent(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "SQLITE_CONSTRAINT_FOREIGNKEY";
}

/** Writes one page without changing anything. Throws when the database cannot be written. */
export async function tryWriting(tx: Db): Promise<void> {
  await sql`pragma user_version = 0`.execute(tx);
}
