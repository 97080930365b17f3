import { AppError } from "../errors.ts";
import { startWorker } from "../lib/worker.ts";
import type { Backup, BackupSource } from "./write-backup.ts";

export interface BackupTask {
  source: BackupSource;
  path: string;
}

/** The answer of the thread. `fault` has a message for the operator, if it is meant for one. */
export type BackupAnswer =
  | { ok: true; backup: Backup }
  | { ok: false; message: string; fix: string | undefined; known: boolean };

/** Makes a backup on another thread, so that it blocks nobody. */
export async function backupOnThread(
  source: BackupSource,
  path: string,
  signal: AbortSignal,
): Promise<Backup> {
  const worker = startWorker("backup/backup-worker.ts");
  const { promise, resolve, reject } = Promise.withResolvers<BackupAnswer>();
  const onEnd = (event: Event): void => {
    event.preventDefault();
    reject(new Error("The thread that made a backup ended"));
  };
  worker.addEventListener("message", ({ data }: MessageEvent<BackupAnswer>) => resolve(data));
  worker.addEventListener("error", onEnd);
  worker.addEventListener("close", onEnd);
  // The thread ends by itself: terminating it inside SQLite can crash the process.
  const onAbort = (): void => {
    worker.postMessage("stop");
    worker.unref();
    reject(signal.reason as Error);
  };
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  worker.postMessage({ source, path } satisfies BackupTask);
  try {
    const answer = await promise;
    worker.terminate();
    if (answer.ok) return answer.backup;
    throw answer.known
      ? new AppError("unavailable", answer.message, answer.fix === undefined ? {} : { fix: answer.fix })
      : new Error(answer.message);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
