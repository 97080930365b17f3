import { AppError } from "../errors.ts";
import { startWorker } from "../lib/worker.ts";
import type { Backup, BackupSource } from "./write-backup.ts";

export interface BackupTask {
  source: BackupSource;
  path: string;
}

/** `fault`: in words, if they are meant for a person. */
export type BackupAnswer =
  | { ok: true; backup: Backup }
  | { ok: false; message: string; fix: string | undefined; known: boolean };

/** Makes a backup on a thread of its own, so that nobody waits meanwhile. */
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
  // It ends by itself then: a thread that is ended inside of SQLite takes the process with it.
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
