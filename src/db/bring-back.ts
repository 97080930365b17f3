import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type Sqlite from "better-sqlite3";
import { databasePath } from "./database-path.ts";
import type { Config } from "../config/config.ts";
import { AppError, messageOf } from "../errors.ts";
import type { WatchLog } from "./watch.ts";

/**
 * Writes a database whose file was deleted, and which is open still, to where it was: the last moment at which that is
 * possible. Closes it.
 */
export function bringBack(sqlite: Sqlite.Database, path: string, log: WatchLog): void {
  const draft = `${path}.back`;
  try {
    rmSync(draft, { force: true });
    sqlite.prepare("vacuum into ?").run(draft);
    sqlite.close();
    // They belong to the file that is gone; with the new one they would damage it.
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
 * A new and empty database would refuse all mail for good, have all that lies beside it erased as nobody's, and throw the
 * log away that the lost one is to be mended with. That one belonged here is told by what a server leaves in the folder of
 * mails, and not by keys: those may be laid before a first start.
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
    ) ?? earlierSign(data.dir);
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
 * What tells of a server that ran here, where a version that left nothing else beside small mails has: the folder of mails
 * alone may be a disk that was put there for a first start, and the lock left by a restore that was refused.
 */
function earlierSign(dir: string): string | undefined {
  const lock = join(dir, "backup.lock");
  return existsSync(join(dir, "mail")) && existsSync(lock) ? lock : undefined;
}
