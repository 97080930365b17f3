import { mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { databasePath, namedPath } from "./database-path.ts";
import { createLog } from "../lib/log.ts";
import { bringBack } from "./bring-back.ts";
import { startCheckpoints } from "./checkpoint.ts";
import { openKysely } from "./dialect.ts";
import { giveBackPages, keepPagesMovable } from "./free-pages.ts";
import { type Db, groupCommit, type Write } from "./group-commit.ts";
import { openSqlite } from "./open-sqlite.ts";
import { createSyncRule } from "./sync-rule.ts";
import type { Schema } from "./schema.ts";
import { lossNoted, lostPages, noteLoss, readLogEnd } from "./lost-commits.ts";
import { shareReads } from "./shared-read.ts";
import { isDamage, isStorageFault } from "./storage-faults.ts";
import { createSyncSpeed } from "./sync-speed.ts";
import { watchOthers } from "./watch-others.ts";
import { type StorageWatch, type WatchLog, watchStorage } from "./watch.ts";

export { afterCommit, unlessCommitted } from "./group-commit.ts";
export type { Db, Write } from "./group-commit.ts";

/** How long the thread stands still at the start, while another process recovers the log or changes how it is kept. */
const OPENING_MS = 5_000;
/** And from then on, for what is over at once: for a transaction of others `openKysely` waits without that. */
const BUSY_TIMEOUT_MS = 10;

export interface Database extends AsyncDisposable {
  db: Db;
  write: Write;
  upkeep: Upkeep;
}

/** The upkeep of a database, beside reading and writing. */
export interface Upkeep {
  /** Whether another process has written since this was asked last. */
  changedElsewhere: () => boolean;
  /** For what comes in from outside: it reads what has been written by now, and not what its tick began with. */
  readAnew: () => void;
  /** Copies the write-ahead log back and cuts it: nothing deleted can be read in it any more. Throws while another process or thread uses it. */
  emptyLog: () => Promise<void>;
  /** Resolves once a log that is long has been copied back: whoever writes much waits for it, so that nobody has to. */
  copyLogBack: () => Promise<void>;
  /** Returns some of the space of deletions to the disk, in the open transaction; false when little is left. */
  giveBackSpace: () => boolean;
  /** A sentence on commits that take long; undefined while all is well. */
  slowDisk: () => string | undefined;
  /** A sentence on commits that the disk has lost; undefined where none are known to be. */
  lostCommits: () => string | undefined;
}

interface OpenOptions {
  /** Hears what is wrong with the disk, and of background work that failed and will be tried again. */
  log?: WatchLog;
  /** Syncs what the rows of a commit point to outside of the database. */
  beforeCommit?: () => Promise<void>;
  /**
   * For the process that holds the data folder: what its log has lost is noted at the start, and a database that was
   * deleted meanwhile is written back at the end. Whoever closes it last copies back what is left of the log, and with that
   * goes the sign of a loss: whoever only looks calls `lookForLoss` first.
   */
  bring_back?: boolean;
  /** The bytes that a database in memory begins with. */
  image?: Buffer;
}

/** Opens `sqlite:<path>` or `sqlite::memory:`, made if absent. Migrations are run by `migrateToLatest`. */
export function openDatabase(
  url: string,
  { log = createLog({ level: "warn", format: "text", aside: true }), ...options }: OpenOptions = {},
): Database {
  const path = databasePath(url);
  const inMemory = path === ":memory:";
  if (!inMemory) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const logEnd = options.bring_back === true && !inMemory ? readLogEnd(path) : undefined;
  const sqlite = openFile(inMemory && options.image ? options.image : path);
  const unnoted = noteLoss(path, lostPages(sqlite, logEnd), log);
  const reads = shareReads(sqlite);
  const watch = watchStorage(inMemory ? null : path, log, resolve(namedPath(url)));
  const speed = createSyncSpeed(log);
  const syncs = createSyncRule(sqlite, { reads, speed });
  const db = openKysely<Schema>(sqlite, { reads, onError: watch.failed, onWrite: syncs.wrote });
  const beforeCommit = async (): Promise<void> => {
    watch.refuseIfGone();
    await options.beforeCommit?.();
  };
  const commit = groupCommit(db, { beforeCommit, ...syncs });
  const warn = (problem: string): void =>
    log.warn({ problem }, "the database log cannot be copied back yet; trying again");
  const checkpoints = inMemory ? undefined : startCheckpoints(sqlite, path, { reads, warn });
  const write = watched(commit, watch, () => checkpoints?.afterCommit());
  const upkeep: Upkeep = {
    changedElsewhere: asFarAsKnown(watchOthers(sqlite)),
    readAnew: () => reads.end(),
    async emptyLog() {
      // On its own thread most of it holds nobody up.
      await checkpoints?.settled();
      // Behind whatever waits for its commit: inside of a transaction it is not possible.
      await write(() => Promise.resolve());
      reads.end();
      cutLog(sqlite);
    },
    copyLogBack: async () => checkpoints?.settled(),
    giveBackSpace: () => giveBackPages(sqlite),
    slowDisk: speed.warning,
    lostCommits: () => (inMemory ? undefined : (unnoted ?? lossNoted(path))),
  };
  return {
    db,
    write,
    upkeep,
    async [Symbol.asyncDispose]() {
      try {
        // Whatever asked earlier has its answer before the database closes.
        await write(() => Promise.resolve());
      } catch (error) {
        // A disk that cannot be written keeps nobody from stopping: what is committed is safe.
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

/** Throws while another process or thread uses the log. */
function cutLog(sqlite: Sqlite.Database): void {
  // Everybody would wait along: whoever asked comes again.
  sqlite.pragma("busy_timeout = 0");
  try {
    const [outcome] = sqlite.pragma("wal_checkpoint(TRUNCATE)") as { busy: number }[];
    if (outcome?.busy) throw new Error("The database log is in use and could not be emptied");
  } finally {
    sqlite.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  }
}

/** Opens a database with the settings that the promises about commits and deletions rest on. */
function openFile(place: string | Buffer): Sqlite.Database {
  const sqlite = openSqlite(place, { timeout: OPENING_MS });
  if (typeof place === "string" && place !== ":memory:") movePagesIfPossible(sqlite);
  sqlite.pragma("journal_mode = WAL");
  sqlite.pragma("foreign_keys = ON");
  sqlite.pragma("secure_delete = ON");
  // A savepoint keeps the pages it may have to give back; by default it keeps them in a file.
  sqlite.pragma("temp_store = MEMORY");
  sqlite.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  return sqlite;
}

/** Nothing else can be said where the database cannot be asked: whoever reads or writes says what is wrong. */
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

/** Where there is no room for it, or another process writes, the next start does it: nothing else depends on it. */
function movePagesIfPossible(sqlite: Sqlite.Database): void {
  try {
    keepPagesMovable(sqlite);
  } catch (error) {
    if (isDamage(error) || !isStorageFault(error)) throw error;
  }
}

/** Whether a row was to name another one that is not there. */
export function isMissingParent(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "SQLITE_CONSTRAINT_FOREIGNKEY";
}

/** Writes a page that changes nothing; throws when the database cannot be written. */
export async function tryWriting(tx: Db): Promise<void> {
  await sql`pragma user_version = 0`.execute(tx);
}
