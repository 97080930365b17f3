import { resolve } from "node:path";
import type { App } from "../../app.ts";
import { bytesWritten, listBackups } from "../../backup/kept.ts";
import { askForBackup, waitingJob } from "../../backup/schedule.ts";
import { heldKinds } from "../../jobs/holds.ts";

/** How many backups the list shows, the newest first; the folder may hold more. */
const MAX_SHOWN = 100;

/** States of the backup job; after `failed` it is retried automatically at `next_at`. */
export const BACKUP_STATES = ["idle", "queued", "held", "running", "failed"] as const;
type BackupState = (typeof BACKUP_STATES)[number];

export async function readBackups(app: App) {
  const { dir, schedule, keep } = app.config.backup;
  const job = await waitingJob(app.db);
  const held = (await heldKinds(app.db)).some(({ kind }) => kind === "make_backup");
  const state = stateOf(job, held, app.now());
  return {
    dir: resolve(dir),
    schedule: schedule === "" ? null : schedule,
    keep,
    state,
    next_at: job?.status === "pending" && !held ? job.run_at : null,
    error: job?.last_error ?? null,
    bytes_written: state === "running" ? await bytesWritten(dir) : null,
    items: (await listBackups(dir)).slice(0, MAX_SHOWN),
  };
}

/**
 * Starts a backup unless one is being made. `refuse` throws when the rate limit is reached; it is not called for a
 * backup in progress.
 */
export async function beginBackup(app: App, refuse: () => void) {
  const job = await waitingJob(app.db);
  const state = stateOf(job, false, app.now());
  if (state !== "running" && state !== "queued") {
    refuse();
    await askForBackup(app);
  }
  return readBackups(app);
}

type Waiting = Awaited<ReturnType<typeof waitingJob>>;

function stateOf(job: Waiting, held: boolean, now: number): BackupState {
  if (job?.status === "running") return "running";
  const due = job !== undefined && job.run_at <= now;
  if (due) return held ? "held" : "queued";
  return job !== undefined && job.failures > 0 ? "failed" : "idle";
}
