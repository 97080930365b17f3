import type Sqlite from "better-sqlite3";
import { startWorker } from "../lib/worker.ts";

const LOOK_MS = 15_000;
/** How long to look for all faults, which reads every page. Nobody waits for it. */
const LOOK_AT_ALL_MS = 600_000;
const MAX_FAULTS = 1_000;

/** SQLITE_IOERR, the low byte of an extended error code such as SQLITE_IOERR_READ. */
const IO_ERROR = 10;

/** Returns whether all faults are read errors of the disk, so that nothing is known about the database. */
export function isUnread(faults: string[]): boolean {
  return faults.every((words) => {
    const code = /^disk I\/O error$|\berror code=(\d+)$/.exec(words);
    return code !== null && (code[1] === undefined || Number(code[1]) % 256 === IO_ERROR);
  });
}

export interface Look {
  path: string;
  look_for: "faults" | "all" | "orphans";
}

/** Returns the faults of a database file, checked on another thread; null when that takes too long. */
export function findFaults(path: string): Promise<string[] | null> {
  return look({ path, look_for: "faults" });
}

/** As `findFaults`, with indexes that do not fit their tables, and without values of single rows. */
export function findAllFaults(path: string): Promise<string[] | null> {
  return look({ path, look_for: "all" }, LOOK_AT_ALL_MS);
}

/** As `findAllFaults`, on this thread. */
export function allFaultsIn(sqlite: Sqlite.Database): string[] {
  const rows = sqlite.pragma(`integrity_check(${MAX_FAULTS})`) as { integrity_check: string }[];
  return rows
    .map(({ integrity_check }) => integrity_check)
    .filter((words) => words !== "ok" && !OF_ONE_ROW.test(words));
}

/** Messages of SQLite's `pragma integrity_check` about values of one row, as opposed to damage of the file. */
export const OF_ONE_ROW = /^(?:NULL value in |CHECK constraint failed in |(?:non-)?[A-Z]+ value in )/;

/**
 * Returns one sentence for each table of a sound database whose rows reference others that do not exist; null when that
 * takes too long.
 */
export function findOrphans(path: string): Promise<string[] | null> {
  return look({ path, look_for: "orphans" });
}

async function look(asked: Look, limit_ms = LOOK_MS): Promise<string[] | null> {
  const worker = startWorker("db/integrity-worker.ts");
  const { promise, resolve } = Promise.withResolvers<string[] | null>();
  const timer = setTimeout(() => resolve(null), limit_ms);
  worker.addEventListener("message", ({ data }: MessageEvent<string[]>) => {
    resolve(data);
    worker.terminate();
  });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    resolve([event.message]);
  });
  worker.postMessage(asked);
  const faults = await promise;
  clearTimeout(timer);
  // Terminating a thread inside SQLite can crash the process, so it may finish; it does not keep the process alive.
  if (faults === null) worker.unref();
  return faults;
}
