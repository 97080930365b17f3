import type { App } from "../app.ts";
import { apart, type Db, tryWriting, type WriteOptions } from "../db/database.ts";
import { isStorageFault } from "../db/storage-faults.ts";
import { messageOf } from "../errors.ts";
import { withLogFields } from "../lib/log.ts";
import { JOB_RULES, type JobKind } from "./kinds.ts";
import {
  backoffSeconds,
  buryJob,
  DAMAGED_PAYLOAD,
  type Job,
  LeaseLostError,
  noteOnDead,
  postponeJob,
  returnJob,
} from "./queue.ts";
import type { Room } from "./shares.ts";
import { GIVEN_UP_FROM, SUSPECT_AGAIN_SECONDS, type Suspects } from "./suspects.ts";
import { waitLimit } from "../lib/wait-limit.ts";

/** How long a job waits after this machine failed it, by its disk or a lack of file handles. */
const STORAGE_AGAIN_SECONDS = 15;

/** How long to wait before storing the outcome of a job again, for instance when the disk is full. */
const RECORD_AGAIN_MS = 1_000;

/** Reason of a job's aborted signal, when its lease has not run out. */
export const STOPPING = new Error("The server is stopping");
/** Reason of an aborted signal: the owner cancelled the work, and the job is deleted. */
export const CANCELLED = new Error("The work was cancelled");

export interface JobHandler<K extends JobKind> {
  /** Does the work, and ends the job in its own final transaction. */
  run: (app: App, job: Job<K>, signal: AbortSignal) => Promise<void>;
  /** Records what follows when the job is given up, in the same transaction. */
  giveUp?: (app: App, tx: Db, job: Job<K>, error: string) => Promise<void>;
  /** Called instead of `giveUp` for a job with a damaged payload. */
  lost?: EndLost;
  /** For recurring work: plans it, at a start and when the clock was set back. */
  plan?: (app: App, tx: Db) => Promise<void>;
  /** How many jobs of this kind may run at once. Each kind has its own pool, so that no kind holds up another. */
  slots: number;
  /** How many bytes of memory all running jobs of this kind may have together, by their weights; further jobs wait. */
  bytes?: number;
  /** How many jobs of this kind may work with one target at once. */
  target_slots?: number;
}

/** Ends all work that has no job any more: the work of the damaged job, which cannot be read, is part of it. */
export type EndLost = (app: App, tx: Db, job: Pick<Job, "share">) => Promise<unknown>;

export type JobHandlers = { [K in JobKind]: JobHandler<K> };

export function roomOf({
  slots,
  bytes = Number.POSITIVE_INFINITY,
  target_slots = Number.POSITIVE_INFINITY,
}: Pick<JobHandler<JobKind>, "slots" | "bytes" | "target_slots">): Room {
  return { slots, bytes, target_slots };
}

/**
 * Runs a job to its end, and never rejects. A job whose end cannot be written stays claimed until its lease or this
 * process ends.
 */
export async function runJob(
  app: App,
  handlers: JobHandlers,
  job: Job,
  { stop, suspects }: { stop: AbortController; suspects: Suspects },
): Promise<void> {
  const { lease_seconds } = JOB_RULES[job.kind];
  const { signal } = stop;
  const late = new Error(`The work was not done within ${lease_seconds} seconds`);
  const timer = waitLimit(lease_seconds * 1_000, () => stop.abort(late));
  await withLogFields(fieldsOf(job), async () => {
    try {
      await attemptOrBury(app, handlers, job, { signal, suspects });
    } catch (error) {
      if (signal.reason === CANCELLED) app.log.info("the work was cancelled");
      else if (error instanceof LeaseLostError) app.log.info(error.message);
      else app.log.error({ kind: job.kind, err: error }, "the end of a job was not written");
    } finally {
      timer.clear();
    }
  });
}

/** The fields of every log line about a job. */
function fieldsOf({ id: job_id, payload }: Job): Record<string, unknown> {
  const { message_id } = payload as { message_id?: string };
  return message_id === undefined ? { job_id } : { job_id, message_id };
}

async function attemptOrBury(
  app: App,
  handlers: JobHandlers,
  job: Job,
  { signal, suspects }: { signal: AbortSignal; suspects: Suspects },
): Promise<void> {
  if (job.payload === DAMAGED_PAYLOAD) return setAside(app, handlers, job, signal);
  const unended = job.attempts - job.failures - 1;
  const error = `The server ended ${unended} times in the middle of it`;
  if (unended >= GIVEN_UP_FROM) return bury(app, handlers, { job, signal, error });
  const ended = suspects.begin(job, unended);
  if (ended === null) return waitAsSuspect(app, job, { signal, error });
  try {
    await attempt(app, handlers, job, signal);
  } finally {
    ended();
  }
}

/** Returns a job that was not started to the queue, without counting an attempt. */
async function waitAsSuspect(
  app: App,
  job: Job,
  { signal, error }: { signal: AbortSignal; error: string },
): Promise<void> {
  const why = `${error}: others like it are tried first`;
  await returnLater(app, job, { signal, seconds: SUSPECT_AGAIN_SECONDS, error: why });
}

/**
 * Stores the outcome of a job, and retries until the disk accepts it: with an outcome that is not stored the work would
 * be done twice. Throws the last error when the server stops first.
 */
export async function writeOutcome<T>(
  app: App,
  signal: AbortSignal,
  operation: (tx: Db) => Promise<T>,
  options?: WriteOptions,
): Promise<T> {
  for (let is_again = false; ; is_again = true) {
    try {
      // Else what it stores would be written to the mail files once more for each try.
      if (is_again) await app.write(tryWriting);
      return await app.write(operation, options);
    } catch (error) {
      if (!isStorageFault(error) || signal.reason === STOPPING) throw error;
      await Bun.sleep(RECORD_AGAIN_MS);
    }
  }
}

async function attempt(app: App, handlers: JobHandlers, job: Job, signal: AbortSignal): Promise<void> {
  try {
    await handlerOf(handlers, job).run(app, job, signal);
  } catch (error) {
    if (error instanceof LeaseLostError || signal.reason === CANCELLED) throw error;
    if (signal.reason === STOPPING) return app.write((tx) => returnJob(tx, job));
    if (isStorageFault(error)) return waitForStorage(app, job, { signal, error });
    app.log.error({ kind: job.kind, attempt: job.attempts, err: error }, "job failed");
    const failed = { job, signal, error: messageOf(error) };
    const failures = job.failures + 1;
    if (failures >= JOB_RULES[job.kind].max_failures) return bury(app, handlers, failed);
    const run_at = app.after(backoffSeconds(failures));
    await writeOutcome(app, signal, (tx) => postponeJob(tx, job, { run_at, error: failed.error }));
  }
}

/**
 * Postpones a job that this machine failed. An unreadable disk or too many open files is no fault of the job, and costs
 * it no attempt.
 */
async function waitForStorage(
  app: App,
  job: Job,
  { signal, error }: { signal: AbortSignal; error: unknown },
): Promise<void> {
  const problem = messageOf(error);
  const seconds = STORAGE_AGAIN_SECONDS;
  app.log.warn({ kind: job.kind, problem, seconds }, "a job waits: this machine cannot do it now");
  await returnLater(app, job, { signal, seconds, error: problem });
}

async function returnLater(
  app: App,
  job: Job,
  { signal, seconds, error }: { signal: AbortSignal; seconds: number; error: string },
): Promise<void> {
  const later = { run_at: app.after(seconds), error };
  await writeOutcome(app, signal, (tx) => returnJob(tx, job, later));
}

/** Marks a job that has failed for good as dead, and logs it, because nobody looks at the queue unasked. */
async function bury(
  app: App,
  handlers: JobHandlers,
  { job, signal, error }: { job: Job; signal: AbortSignal; error: string },
): Promise<void> {
  const { giveUp } = handlerOf(handlers, job);
  await endForGood(app, job, { signal, error, follow: async (tx) => giveUp?.(app, tx, job, error) });
}

/** Marks a job with a damaged payload as dead, because its work cannot be done. */
async function setAside(app: App, handlers: JobHandlers, job: Job, signal: AbortSignal): Promise<void> {
  const handler = handlerOf(handlers, job);
  await endForGood(app, job, { signal, error: UNREADABLE, follow: (tx) => endLost(app, tx, handler, job) });
}

/**
 * Marks a job as dead, and records what follows from that. Where a damaged row keeps that from being recorded, the job
 * ends all the same: nobody would ever hear of one that is claimed again and again.
 */
async function endForGood(
  app: App,
  job: Job,
  { signal, error, follow }: { signal: AbortSignal; error: string; follow: (tx: Db) => Promise<void> },
): Promise<void> {
  app.log.error({ kind: job.kind, error }, "job given up; it is kept in the table");
  await writeOutcome(app, signal, async (tx) => {
    await buryJob(app, tx, job, error);
    const failure = await apart(tx, () => follow(tx));
    if (failure === undefined) return;
    app.log.error({ kind: job.kind, err: failure }, "what follows from the end of a job was not written");
    await noteOnDead(tx, job, `${error}. What follows from that could not be written: ${failure.message}`);
  });
}

/** Why a job with a damaged row is set aside. */
export const UNREADABLE = "What it is for cannot be read: the database is damaged there";

/** Ends the work of a damaged job. Where work is planned by what it is for, it is planned again instead. */
export async function endLost(
  app: App,
  tx: Db,
  { lost, plan }: Pick<JobHandlers[JobKind], "lost" | "plan">,
  job: Pick<Job, "share">,
): Promise<void> {
  await lost?.(app, tx, job);
  await plan?.(app, tx);
}

function handlerOf(handlers: JobHandlers, job: Job): JobHandler<JobKind> {
  return handlers[job.kind] as unknown as JobHandler<JobKind>;
}
