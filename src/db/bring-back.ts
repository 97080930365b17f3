import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type Sqlite from "better-sqlite3";
import { databasePath } from "./database-path.ts";
import type { Config } from "../config/config.ts";
import { AppError, messageOf } from "../errors.ts";
import type { WatchLog } from "./watch.ts";

/**
 * Writes a database whose file was deleted while it was open back to its path, and closes it. After the close nothing
 * could be saved any more.
 */
export function bringBack(sqlite: Sqlite.Database, path: string, log: WatchLog): void {
  const draft = `${path}.back`;
  try {
    rmSync(draft, { force: true });
    sqlite.prepare("vacuum into ?").run(draft);
    sqlite.close();
    // The log and its index belong to the deleted file; beside the new one they would damage it.
    for (const left of ["-wal", "-shm"]) rmSync(path + left, { force: true });
    renameSync(draft, path);
    log.warn({ path }, "the database file was gone; what was open of it has been written back");
  } catch (error) {
    log.error(
      { path, problem: messageOf(error) },
      "the database file is gone and could not be written back: restore a backup",
    );
  }
}

/**
 * Throws when the database file is missing although this data folder was in use. Starting with an empty database would
 * refuse all mail for good, erase the stored mails as nobody's, and drop the write-ahead log that could repair the lost
 * database. Whether the folder was in use is told by the files of mails and not by keys, which may have been put there
 * before a first start.
 */
export function refuseLost({ data, database }: Pick<Config, "data" | "database">): void {
  const path = databasePath(database.url);
  const mail = join(data.dir, "mail");
  if (path === ":memory:" || (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  const segments = existsSync(mail)
    ? readdirSync(mail)
        .sort()
        .map((name) => join(mail, name))
    : [];
  const left =
    [`${path}-wal`, `${path}.back`, ...segments].find(
      (file) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0,
    ) ?? traceOfOlderVersion(data.dir);
  if (left === undefined) return;
  throw new AppError(
    "unavailable",
    `The database ${path} is gone, but ${left}, which belongs to it, is there.`,
    {
      fix: "Put it back, or restore a backup: mailwright restore FILE. To begin anew, move the data folder away.",
    },
  );
}

/**
 * Returns the lock file of backups if the folder of mails is there as well: the only traces that an older version
 * leaves when all mails were small. Each alone proves nothing: the folder may be a disk mounted for a first start, and
 * the lock may come from a restore that was refused.
 */
function traceOfOlderVersion(dir: string): string | undefined {
  const lock = join(dir, "backup.lock");
  return existsSync(join(dir, "mail")) && existsSync(lock) ? lock : undefined;
}
