import { mkdirSync, truncateSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import Sqlite from "better-sqlite3";
import { databasePath } from "./database-path.ts";
import type { Config } from "../config/config.ts";
import { folderFault } from "../lib/start-faults.ts";
import { inodeOf } from "./inode.ts";
import { isDamage, StorageError } from "./storage-faults.ts";

export interface Lock extends Disposable {
  /**
   * What to throw while another file, or none, is where the lock was taken: whoever comes next would get that one. Nor is
   * it known while the folder cannot be entered.
   */
  gone: () => StorageError | undefined;
}

/**
 * Holds the data folder and the database, which may lie elsewhere, for this process until it ends, however it ends: the
 * locks belong to the operating system. Returns undefined when another process still has one of them after `wait_ms`.
 */
export function lockStores(
  { data, database }: Pick<Config, "data" | "database">,
  wait_ms = 0,
): Lock | undefined {
  const folder = lockDataFolder(data.dir, wait_ms);
  if (!folder) return undefined;
  const path = databasePath(database.url);
  const file = path === ":memory:" ? folder : lockFile(dirname(path), `${basename(path)}.lock`, wait_ms);
  if (!file) folder[Symbol.dispose]();
  return (
    file && {
      gone: () => folder.gone() ?? file.gone(),
      [Symbol.dispose]() {
        file[Symbol.dispose]();
        folder[Symbol.dispose]();
      },
    }
  );
}

/** The data folder alone. */
export function lockDataFolder(dir: string, wait_ms = 0): Lock | undefined {
  return lockFile(dir, "mailwright.lock", wait_ms);
}

/** Holds the bytes of mails as they are: a backup copies them, or an eraser takes some away. Else as `lockDataFolder`. */
export function lockMailBytes(dir: string, wait_ms = 0): Lock | undefined {
  return lockFile(dir, "backup.lock", wait_ms);
}

function lockFile(dir: string, name: string, wait_ms: number): Lock | undefined {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    return lockEmptied(join(dir, name), wait_ms);
  } catch (error) {
    throw folderFault(error, dir);
  }
}

/**
 * Nothing is ever written to a lock. Bytes that others have put there are taken out: SQLite looks at them only once it has
 * found that nobody holds the lock.
 */
function lockEmptied(path: string, wait_ms: number): Lock | undefined {
  try {
    return lockPath(path, wait_ms);
  } catch (error) {
    if (!isDamage(error)) throw error;
  }
  truncateSync(path);
  return lockPath(path, wait_ms);
}

function lockPath(path: string, wait_ms: number): Lock | undefined {
  let lock: Sqlite.Database | undefined;
  try {
    lock = new Sqlite(path, { timeout: wait_ms });
    lock.exec("begin exclusive");
    const inode = inodeOf(path);
    return {
      gone: () => whyGone(path, inode),
      [Symbol.dispose]: () => void lock?.close(),
    };
  } catch (error) {
    lock?.close();
    if (error instanceof Sqlite.SqliteError && error.code === "SQLITE_BUSY") return undefined;
    throw error;
  }
}

function whyGone(path: string, inode: number | undefined): StorageError | undefined {
  try {
    if (inodeOf(path) === inode) return undefined;
    return new StorageError("LOCK_GONE", `${path} is not the file any more that this server holds`);
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
}
