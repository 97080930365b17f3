import { statSync } from "node:fs";
import type Sqlite from "better-sqlite3";
import { startWorker } from "../lib/worker.ts";

/** The log is worth copying back into the database from this size on. */
const CHECKPOINT_FROM_BYTES = 4 * 1024 * 1024;
/** A log this large means that the worker cannot keep up; the writer then pays for it. */
const OVERGROWN_BYTES = 512 * 1024 * 1024;
const LOOK_EVERY_MS = 250;

interface Checkpoints extends AsyncDisposable {
  afterCommit: () => void;
}

/**
 * Copies the write-ahead log back into the database on another thread: a checkpoint on the accepting thread
 * holds up every mail that arrives meanwhile.
 */
export function startCheckpoints(sqlite: Sqlite.Database, path: string): Checkpoints {
  sqlite.pragma("wal_autocheckpoint = 0");
  let timer: ReturnType<typeof setTimeout> | undefined;
  let worker: Worker | undefined;
  let busy = false;

  const look = (): void => {
    timer = undefined;
    const bytes = walBytes(path);
    if (bytes > OVERGROWN_BYTES) sqlite.pragma("wal_checkpoint(PASSIVE)");
    else if (bytes > CHECKPOINT_FROM_BYTES && !busy) {
      busy = true;
      worker ??= checkpointWorker(path, () => (busy = false));
      worker.postMessage("checkpoint");
    }
  };
  return {
    afterCommit: () => void (timer ??= setTimeout(look, LOOK_EVERY_MS)),
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      worker?.terminate();
    },
  };
}

function checkpointWorker(path: string, done: () => void): Worker {
  const worker = startWorker("db/checkpoint-worker.ts");
  worker.addEventListener("message", done);
  worker.addEventListener("error", done);
  worker.postMessage({ path });
  return worker;
}

function walBytes(path: string): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}
