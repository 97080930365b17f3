import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import Sqlite from "better-sqlite3";
import { sql } from "kysely";
import { folderFault } from "../lib/start-faults.ts";
import { startCheckpoints } from "./checkpoint.ts";
import { openKysely } from "./dialect.ts";
import { type Db, groupCommit, type Write } from "./group-commit.ts";
import type { Schema } from "./schema.ts";

export type { Db, Write } from "./group-commit.ts";

/** How long to wait for a second process (a command line) that holds the write lock. */
const BUSY_TIMEOUT_MS = 5_000;
const STORAGE_FAULTS =
  /^(SQLITE_(BUSY|CANTOPEN|FULL|IOERR|LOCKED|NOMEM|READONLY)|ENOSPC|EDQUOT|EIO|EROFS|EMFILE|ENFILE)/;

export interface Database extends AsyncDisposable {
  db: Db;
  write: Write;
  /** Copies the write-ahead log back and cuts it: nothing deleted can be read in it any more. Throws while another process or thread uses it. */
  emptyLog: () => Promise<void>;
}

/**
 * Opens `sqlite:<path>` or `sqlite::memory:`, made if absent. Migrations are run by `migrateToLatest`. `warn` hears
 * of background work that failed and will be tried again.
 */
export function openDatabase(
  url: string,
  warn: (problem: string) => void = console.warn,
  beforeCommit?: () => Promise<void>,
): Database {
  const path = url.replace(/^sqlite:/, "");
  const inMemory = path === ":memory:";
  if (!inMemory) mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const sqlite = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS });
  sqlite.pragma("journal_mode = WAL");
  // FULL, because NORMAL loses acknowledged mail when the power goes.
  sqlite.pragma("synchronous = FULL");
  sqlite.pragma("foreign_keys = ON");
  sqlite.pragma("secure_delete = ON");
  // A savepoint keeps the pages it may have to give back; by default it keeps them in a file.
  sqlite.pragma("temp_store = MEMORY");
  const db = openKysely<Schema>(sqlite);
  const write = groupCommit(db, beforeCommit);
  const checkpoints = inMemory ? undefined : startCheckpoints(sqlite, path, warn);
  return {
    db,
    async emptyLog() {
      // Behind whatever waits for its commit: inside of a transaction it is not possible.
      await write(() => Promise.resolve());
      // Everybody would wait along: whoever asked comes again.
      sqlite.pragma("busy_timeout = 0");
      try {
        const [outcome] = sqlite.pragma("wal_checkpoint(TRUNCATE)") as { busy: number }[];
        if (outcome?.busy) throw new Error("The database log is in use and could not be emptied");
      } finally {
        sqlite.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
      }
    },
    write: checkpoints ? (operation) => write(operation).finally(checkpoints.afterCommit) : write,
    async [Symbol.asyncDispose]() {
      // Whatever asked earlier has its answer before the database closes.
      try {
        await write(() => Promise.resolve());
      } finally {
        await checkpoints?.[Symbol.asyncDispose]();
        await db.destroy();
      }
    },
  };
}

/** Whether `error` says that the disk cannot be written now, through no fault of the operation. */
export function isStorageFault(error: unknown): boolean {
  return error instanceof Error && "code" in error && STORAGE_FAULTS.test(String(error.code));
}

/** Whether a row was to name another one that is not there. */
export function isMissingParent(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "SQLITE_CONSTRAINT_FOREIGNKEY";
}

/** Writes a page that changes nothing; throws when the database cannot be written. */
export async function tryWriting(tx: Db): Promise<void> {
  await sql`pragma user_version = 0`.execute(tx);
}

/**
 * Holds the data folder for this process until it ends, however it ends: the lock belongs to the operating
 * system. Returns undefined when another process still has it after `wait_ms`.
 */
export function lockDataFolder(dir: string, wait_ms = 0): Disposable | undefined {
  let lock: Sqlite.Database | undefined;
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    lock = new Sqlite(join(dir, "mailwright.lock"), { timeout: wait_ms });
    lock.exec("begin exclusive");
    return { [Symbol.dispose]: () => void lock?.close() };
  } catch (error) {
    lock?.close();
    if (error instanceof Sqlite.SqliteError && error.code === "SQLITE_BUSY") return undefined;
    throw folderFault(error, dir);
  }
}
