import { statSync } from "node:fs";
import type Sqlite from "better-sqlite3";
import { messageOf } from "../errors.ts";
import { startWorker } from "../lib/worker.ts";
import type { SharedRead } from "./shared-read.ts";

/** The log is copied back into the database from this size on. */
const CHECKPOINT_FROM_BYTES = 4 * 1024 * 1024;
/** Under unbroken load the worker never catches up quite; from this size on the writer copies the little that is left. */
const OVERGROWN_BYTES = 32 * 1024 * 1024;
/** A log that starts anew is cut to this size. Below it the file keeps its blocks: syncing one that grows costs more. */
const KEPT_BYTES = 64 * 1024 * 1024;
const LOOK_EVERY_MS = 250;
/** How long a stop waits for a checkpoint: a thread that ends inside SQLite can take the process with it. */
const FINISH_MS = 10_000;

interface Checkpoints extends AsyncDisposable {
  afterCommit: () => void;
  /** Resolves once no checkpoint is under way; a log that is long has been copied back as far as possible. */
  settled: () => Promise<void>;
}

/**
 * Copies the write-ahead log back into the database on another thread: a checkpoint on the accepting thread
 * holds up every mail that arrives meanwhile. One that fails loses nothing and is tried again.
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

  const report = (problem: string | null): void => {
    if (problem !== null && problem !== reported) warn(problem);
    reported = problem;
  };
  const checkpoint = async (): Promise<void> => {
    try {
      worker ??= startWorker("db/checkpoint-worker.ts");
      const answer = await ask(worker, path);
      if (!answer.alive) worker = undefined;
      report(answer.problem);
    } catch (error) {
      report(messageOf(error));
    }
    if (walBytes(path) > OVERGROWN_BYTES) report(finishHere(sqlite, reads));
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

/** One checkpoint on the worker, or the worker's end. */
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

function finishHere(sqlite: Sqlite.Database, reads: SharedRead): string | null {
  try {
    reads.end();
    sqlite.pragma("wal_checkpoint(PASSIVE)");
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** The length of the log; 0 where it cannot be told now, because then it cannot be copied back either. */
function walBytes(path: string): number {
  try {
    return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    return 0;
  }
}
