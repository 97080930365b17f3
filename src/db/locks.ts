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
   * Returns an error to throw when the file at the lock's path is missing or another one, because a second server could
   * then take that lock; also when its folder cannot be entered. Undefined while the lock is in place.
   */
  gone: () => StorageError | undefined;
}

/**
 * Locks the data folder and the database, which may lie elsewhere, until this process ends in whatever way: the locks
 * belong to the operating system. Returns undefined when another process still holds one of them after `wait_ms`.
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

/** Locks the data folder alone. */
export function lockDataFolder(dir: string, wait_ms = 0): Lock | undefined {
  return lockFile(dir, "mailwright.lock", wait_ms);
}

/**
 * Locks the mail files against change, for a backup that copies them or an eraser that removes parts. Otherwise like
 * `lockDataFolder`.
 */
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
 * Takes a lock, and empties the file if somebody wrote to it: a lock is an empty SQLite database, and other content
 * would be an error. SQLite reads the content only once nobody else holds the lock, so emptying takes it from nobody.
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
