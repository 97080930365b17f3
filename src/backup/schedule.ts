import { deleteJobWithKey } from "../jobs/remove.ts";
import { hasten } from "../jobs/hasten.ts";
import { join } from "node:path";
import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { AppError, messageOf } from "../errors.ts";
import { deferJob, enqueue, finishJob, type Job, postponeJob } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { nextTime } from "../lib/cron.ts";
import { ensureFolder, keepNewest, SCHEDULED } from "./kept.ts";
import { backupOnThread } from "./thread.ts";
import { sourceOf } from "./write-backup.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

const KEY = "make_backup";
const FIRST_RETRY_SECONDS = 300;
const MAX_RETRY_SECONDS = 6 * HOUR_SECONDS;

/** Plans the configured backups at the start of the server. One that was missed meanwhile is made now. */
export async function makeBackupsLater(app: App, tx: Db): Promise<void> {
  const { schedule } = app.config.backup;
  const payload = { schedule };
  const waiting = await waitingJob(tx);
  const same = waiting?.payload === JSON.stringify(payload);
  // Without a schedule, one may have been requested.
  const asked = same ? app.after(MAX_RETRY_SECONDS) : undefined;
  const next = schedule === "" ? asked : nextTime(schedule, app.now());
  // The planned time may also come from a wrong clock, far ahead. What is known of failures stays known.
  if (same && next !== undefined && waiting.run_at > next)
    await hasten(app, tx, { kind: "make_backup", dedupe_key: KEY, run_at: next });
  if (same && next !== undefined) return;
  if (waiting) await deleteJobWithKey(tx, { dedupe_key: KEY });
  if (next !== undefined)
    await enqueue(app, tx, { kind: "make_backup", payload, dedupe_key: KEY, run_at: next });
}

/** Requests a backup now: the next one is made earlier or, without a schedule, one is planned. */
export async function askForBackup(app: App): Promise<void> {
  const { schedule } = app.config.backup;
  await app.write(async (tx) => {
    const work = { kind: "make_backup", payload: { schedule }, dedupe_key: KEY } as const;
    if (await enqueue(app, tx, work)) return;
    await hasten(app, tx, { kind: "make_backup", dedupe_key: KEY, run_at: app.now() });
  });
  app.worker?.wakeAll();
}

/** Makes one backup and deletes those beyond the newest; plans the next, or an earlier retry after a failure. */
export async function makeBackupNow(app: App, job: Job<"make_backup">, signal: AbortSignal): Promise<void> {
  const { schedule, dir, keep } = app.config.backup;
  if (schedule === "" && job.payload.schedule !== "") return app.write((tx) => finishJob(tx, job));
  const path = join(dir, nameAt(app.now()));
  const started = performance.now();
  try {
    refuseMemory(app);
    await ensureFolder(dir);
    const { manifest, bytes } = await backupOnThread(sourceOf(app.config, app.now()), path, signal);
    const surplus = await deleteOlder(app, path, keep);
    const seconds = Math.round((performance.now() - started) / 100) / 10;
    app.log.info({ path, bytes, seconds }, "backup made");
    if (manifest.missing_bytes > 0)
      app.log.error(
        { bytes: manifest.missing_bytes },
        "bytes of mails are missing from the data folder, and so from the backup",
      );
    await writeOutcome(app, signal, (tx) =>
      schedule === "" ? finishJob(tx, job) : deferJob(tx, job, nextTime(schedule, app.now()), surplus),
    );
  } catch (error) {
    if (signal.aborted || !(error instanceof AppError)) throw error;
    const wait = Math.min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2 ** job.failures);
    const words = [error.message, error.extras.fix].filter(Boolean).join(" ");
    app.log.error({ path, next_try_seconds: wait }, `no backup was made: ${words}`);
    await writeOutcome(app, signal, (tx) => postponeJob(tx, job, { run_at: app.after(wait), error: words }));
  }
}

/** Deletes the backups beyond the newest. Returns what keeps one from being deleted: the new one is no worse for it. */
async function deleteOlder(app: App, path: string, keep: number): Promise<string | null> {
  const left = await keepNewest(path, SCHEDULED, keep).catch((error: unknown) => [
    { path: app.config.backup.dir, problem: messageOf(error) },
  ]);
  const [first] = left;
  if (first === undefined) return null;
  app.log.error({ left }, "older backups could not be deleted, and take up room");
  return `Older backups could not be deleted: ${first.problem} (${first.path}). Delete them, or see why this server may not.`;
}

/** Returns a warning about the automatic backups; undefined when all is well. */
export async function backupWarning(app: App): Promise<string | undefined> {
  const waiting = await waitingJob(app.db);
  if (!waiting || waiting.failures === 0) return waiting?.last_error ?? undefined;
  return `The last backup failed. ${waiting.last_error ?? ""}`.trim();
}

/** Returns the job of the current or next backup; undefined where none is planned. */
export function waitingJob(db: Db) {
  return db
    .selectFrom("jobs")
    .select(["payload", "status", "run_at", "failures", "last_error"])
    .where("dedupe_key", "=", KEY)
    .executeTakeFirst();
}

function refuseMemory({ config }: App): void {
  if (config.database.url !== "sqlite::memory:") return;
  throw new AppError("unavailable", "The database is in memory only, so there is nothing to back up.", {
    fix: "Name a file with database.url.",
  });
}

/** Returns an archive's name that matches `SCHEDULED`. */
function nameAt(now: number): string {
  return `mailwright-${new Date(now * 1_000).toISOString().replaceAll(/[-:]|\.\d+/g, "")}.zip`;
}
