import { existsSync, mkdirSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import Sqlite from "better-sqlite3";
import type { Config } from "../config.ts";
import { folderFault } from "../lib/start-faults.ts";

/**
 * Holds the data folder and the database, which may lie elsewhere, for this process until it ends, however it ends: the
 * locks belong to the operating system. Returns undefined when another process still has one of them after `wait_ms`.
 */
export function lockStores(
  { data, database }: Pick<Config, "data" | "database">,
  wait_ms = 0,
): Disposable | undefined {
  const folder = lockDataFolder(data.dir, wait_ms);
  if (!folder) return undefined;
  const path = fileOf(database.url);
  const file = path === null ? folder : lockFile(dirname(path), `${basename(path)}.lock`, wait_ms);
  if (!file) folder[Symbol.dispose]();
  return (
    file && {
      [Symbol.dispose]() {
        file[Symbol.dispose]();
        folder[Symbol.dispose]();
      },
    }
  );
}

/** The file that a database is in, whatever links lead to it; null for one in memory. */
function fileOf(url: string): string | null {
  const path = url.replace(/^sqlite:/, "");
  if (path === ":memory:") return null;
  return existsSync(path) ? realpathSync(path) : path;
}

/** The data folder alone. */
export function lockDataFolder(dir: string, wait_ms = 0): Disposable | undefined {
  return lockFile(dir, "mailwright.lock", wait_ms);
}

/** Holds the bytes of mails as they are: a backup copies them, or an eraser takes some away. Else as `lockDataFolder`. */
export function lockMailBytes(dir: string, wait_ms = 0): Disposable | undefined {
  return lockFile(dir, "backup.lock", wait_ms);
}

function lockFile(dir: string, name: string, wait_ms: number): Disposable | undefined {
  let lock: Sqlite.Database | undefined;
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    lock = new Sqlite(join(dir, name), { timeout: wait_ms });
    lock.exec("begin exclusive");
    return { [Symbol.dispose]: () => void lock?.close() };
  } catch (error) {
    lock?.close();
    if (error instanceof Sqlite.SqliteError && error.code === "SQLITE_BUSY") return undefined;
    throw folderFault(error, dir);
  }
}
