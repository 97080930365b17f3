import { startWorker } from "../lib/worker.ts";

const LOOK_MS = 15_000;

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
  look_for: "faults" | "orphans";
}

/** Returns the faults of a database file, checked on another thread; null when that takes too long. */
export function findFaults(path: string): Promise<string[] | null> {
  return look({ path, look_for: "faults" });
}

/**
 * Returns one sentence for each table of a sound database whose rows reference others that do not exist; null when that
 * takes too long.
 */
export function findOrphans(path: string): Promise<string[] | null> {
  return look({ path, look_for: "orphans" });
}

async function look(asked: Look): Promise<string[] | null> {
  const worker = startWorker("db/integrity-worker.ts");
  const { promise, resolve } = Promise.withResolvers<string[] | null>();
  const timer = setTimeout(() => resolve(null), LOOK_MS);
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
