import { startWorker } from "../lib/worker.ts";

const LOOK_MS = 15_000;

/** SQLITE_IOERR, below what says more of it. */
const IO_ERROR = 10;

/** Whether all that was found wrong is that the disk could not be read, so that nobody knows what is there. */
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

/** What is wrong with a database file, looked at on another thread; null when that takes too long. */
export function findFaults(path: string): Promise<string[] | null> {
  return look({ path, look_for: "faults" });
}

/** The rows of a sound database that name others which are not there, as sentences; null when that takes too long. */
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
  // One that is still inside of SQLite would take the process with it: it ends when it is done.
  if (faults === null) worker.unref();
  return faults;
}
