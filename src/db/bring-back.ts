import { existsSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type Sqlite from "better-sqlite3";
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
 * log away that the lost one is to be mended with.
 */
export function refuseLost(path: string, mail: string): void {
  if (path === ":memory:" || (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0) return;
  const segments = existsSync(mail) ? readdirSync(mail).map((name) => join(mail, name)) : [];
  const left = [`${path}-wal`, ...segments].find(
    (file) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0,
  );
  if (left === undefined) return;
  throw new AppError(
    "unavailable",
    `The database ${path} is gone, but ${left}, which belongs to it, is there.`,
    {
      fix: "Put it back, or restore a backup: mailwright restore FILE. To begin anew, move the data folder away.",
    },
  );
}
