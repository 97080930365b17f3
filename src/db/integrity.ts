import { startWorker } from "../lib/worker.ts";
import type { Damage } from "./examine.ts";

/** How long a look may take; the index of words of a million messages takes twenty seconds. */
const LOOK_MS = 60_000;
/** How long a look for all faults may take, which reads every page. Nobody waits for it. */
const LOOK_AT_ALL_MS = 600_000;

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
  look_for: "faults" | "damage" | "orphans";
}

/** Returns the faults of a database file, checked on another thread; null when that takes too long. */
export function findFaults(path: string): Promise<string[] | null> {
  return look({ path, look_for: "faults" }, AS_SENTENCES);
}

/** As `findFaults`; also compares indexes with tables, leaves out values of single rows, and says what can be mended. */
export function findDamage(path: string): Promise<Damage | null> {
  return look({ path, look_for: "damage" }, { limit_ms: LOOK_AT_ALL_MS, failed: nothingKnown });
}

/** Damage of which nothing more is known. */
export function nothingKnown(fault: string): Damage {
  return { faults: [fault], indexes: [], text_index: false, lost: [], is_worn: false };
}

/** Messages of SQLite's `pragma integrity_check` about values of one row, as opposed to damage of the file. */
export const OF_ONE_ROW = /^(?:NULL value in |CHECK constraint failed in |(?:non-)?[A-Z]+ value in )/;

/**
 * Returns one sentence for each table of a sound database whose rows reference others that do not exist; null when that
 * takes too long.
 */
export function findOrphans(path: string): Promise<string[] | null> {
  return look({ path, look_for: "orphans" }, AS_SENTENCES);
}

const AS_SENTENCES = { limit_ms: LOOK_MS, failed: (fault: string) => [fault] };

async function look<Answer>(
  asked: Look,
  { limit_ms, failed }: { limit_ms: number; failed: (fault: string) => Answer },
): Promise<Answer | null> {
  const worker = startWorker("db/integrity-worker.ts");
  const { promise, resolve } = Promise.withResolvers<Answer | null>();
  const timer = setTimeout(() => resolve(null), limit_ms);
  worker.addEventListener("message", ({ data }: MessageEvent<Answer | { error: string }>) => {
    resolve(isError(data) ? failed(data.error) : data);
    worker.terminate();
  });
  worker.addEventListener("error", (event) => {
    event.preventDefault();
    resolve(failed(event.message));
  });
  worker.postMessage(asked);
  const answer = await promise;
  clearTimeout(timer);
  // Terminating a thread inside SQLite can crash the process, so it may finish; it does not keep the process alive.
  if (answer === null) worker.unref();
  return answer;
}

function isError(answer: unknown): answer is { error: string } {
  return typeof answer === "object" && answer !== null && "error" in answer;
}
