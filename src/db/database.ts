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
