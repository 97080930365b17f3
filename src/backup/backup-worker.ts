import { AppError, messageOf } from "../errors.ts";
import type { BackupAnswer, BackupTask } from "./thread.ts";
import { backupToFile } from "./write-backup.ts";

declare const self: Worker;

const stopping = new AbortController();

/** Receives one task; "stop" aborts it. */
self.addEventListener("message", ({ data }: MessageEvent<BackupTask | "stop">) => {
  if (data === "stop") stopping.abort();
  else void answer(data);
});

async function answer({ source, path }: BackupTask): Promise<void> {
  postMessage(await made(source, path));
}

async function made(source: BackupTask["source"], path: string): Promise<BackupAnswer> {
  try {
    return { ok: true, backup: await backupToFile(source, path, stopping.signal) };
  } catch (error) {
    const known = error instanceof AppError;
    return { ok: false, message: messageOf(error), fix: known ? error.extras.fix : undefined, known };
  }
}
