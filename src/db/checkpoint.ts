import { statSync } from "node:fs";
import type Sqlite from "better-sqlite3";
import { messageOf } from "../errors.ts";
import { forgetCached } from "../lib/cached-pages.ts";
import { startWorker } from "../lib/worker.ts";
import type { SharedRead } from "./shared-read.ts";
import { MB } from "../lib/sizes.ts";

/** Size of the write-ahead log from which on it is copied back into the database. */
const CHECKPOINT_FROM_BYTES = 4 * MB;
/**
 * Under unbroken load the worker never copies quite all of the log. From this size on the writing thread copies the
 * rest.
 */
const OVERGROWN_BYTES = 32 * MB;
/**
 * Size to which SQLite cuts a log that begins anew. A smaller file keeps its blocks, because syncing a growing file
 * costs more.
 */
const KEPT_BYTES = 64 * MB;
const LOOK_EVERY_MS = 250;
/** How long a stop waits for a checkpoint: a thread that ends inside SQLite can take the process with it. */
const FINISH_MS = 10_000;

interface Checkpoints extends AsyncDisposable {
  afterCommit: () => void;
  /** Starts a checkpoint if the log is long, and resolves once none is under way. */
  settled: () => Promise<void>;
}

/**
 * Copies the write-ahead log back into the database on another thread: on the accepting thread it would hold up every
 * arriving mail. A checkpoint that fails loses nothing and is tried again.
 */
export function startCheckpoints(
  sqlite: Sqlite.Database,
  path: string,
  { reads, warn }: { reads: SharedRead; warn: (problem: string) => void },
): Checkpoints {
  sqlite.pragma("wal_autocheckpoint = 0");
  sqlite.pragma(`journal_size_limit = ${KEPT_BYTES}`);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let worker: Worker | undefined;
  let running: Promise<void> | undefined;
  let reported: string | null = null;

  const report = async (problem: string | null): Promise<void> => {
    if (problem !== null && problem !== reported) warn(problem);
    reported = problem;
    if (problem !== null) await forgetCached(path);
  };
  const checkpoint = async (): Promise<void> => {
    let problem: string | null;
    try {
      worker ??= startWorker("db/checkpoint-worker.ts");
      const answer = await ask(worker, path);
      if (!answer.alive) worker = undefined;
      ({ problem } = answer);
    } catch (error) {
      problem = messageOf(error);
    }
    await report(problem);
    if (walBytes(path) > OVERGROWN_BYTES) await report(checkpointHere(sqlite, reads));
    running = undefined;
  };
  const look = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (!running && walBytes(path) > CHECKPOINT_FROM_BYTES) running = checkpoint();
  };
  return {
    afterCommit: () => void (timer ??= setTimeout(look, LOOK_EVERY_MS)),
    async settled() {
      look();
      await running;
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await Promise.race([running, Bun.sleep(FINISH_MS)]);
      worker?.terminate();
    },
  };
}

/** Asks the worker for one checkpoint; resolves as well when the worker ends without an answer. */
async function ask(worker: Worker, path: string): Promise<{ alive: boolean; problem: string | null }> {
  const { promise, resolve } = Promise.withResolvers<{ alive: boolean; problem: string | null }>();
  const heard = new AbortController();
  const { signal } = heard;
  const onEnd = (event: Event): void => {
    event.preventDefault();
    resolve({ alive: false, problem: "the checkpoint thread ended" });
  };
  worker.addEventListener("message", ({ data }) => resolve({ alive: true, problem: data }), { signal });
  worker.addEventListener("error", onEnd, { signal });
  worker.addEventListener("close", onEnd, { signal });
  worker.postMessage(path);
  const answer = await promise;
  heard.abort();
  return answer;
}

function checkpointHere(sqlite: Sqlite.Database, reads: SharedRead): string | null {
  try {
    reads.end();
    sqlite.pragma("wal_checkpoint(PASSIVE)");
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * Returns the length of the log in bytes. Returns 0 when it cannot be read, because then it cannot be copied back
 * either.
 */
function walBytes(path: string): number {
  try {
    return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return 0;
  }
}
