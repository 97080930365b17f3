import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { messageOf } from "../errors.ts";
import {
  backoffSeconds,
  buryJob,
  claim,
  JOB_RULES,
  type Job,
  type JobKind,
  LeaseLostError,
  nextRunAt,
  postponeJob,
  returnJob,
  voidLeases,
} from "./queue.ts";

/** How long a stop waits for work in progress before it hands the work back to the table. */
const DRAIN_MS = 20_000;
/** How long to wait before trying again to write down that a job failed (a full disk, say). */
const RECORD_AGAIN_MS = 1_000;
/** Longest sleep before looking at the table again; also the longest a lost lease goes unnoticed. */
const MAX_SLEEP_MS = 60_000;

export interface JobHandler<K extends JobKind> {
  /** Does the work and ends the job in its own closing transaction. */
  run: (app: App, job: Job<K>, signal: AbortSignal) => Promise<void>;
  /** Says what it means for the rest that the job is dead, in the transaction that buries it. */
  giveUp?: (app: App, tx: Db, job: Job<K>, error: string) => Promise<void>;
  /** Jobs of this kind that may run at once: a pool of its own, so that no kind holds up another. */
  slots: number;
}

export type JobHandlers = { [K in JobKind]: JobHandler<K> };

export interface JobWorker extends AsyncDisposable {
  start(): Promise<void>;
  /** Looks for due jobs of a kind now. */
  wake(kind: JobKind): void;
  /** Takes a free slot for a job the caller enqueues as `claimed`; follow with `run` or `release`. */
  reserve(kind: JobKind): boolean;
  release(kind: JobKind): void;
  run(job: Job): void;
  /** Runs whatever is due, and what that makes due, until nothing is left. */
  drain(): Promise<void>;
}

interface Pool {
  kind: JobKind;
  used: number;
  claiming: boolean;
  again: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
}

export function createWorker(app: App, handlers: JobHandlers): JobWorker {
  const kinds = Object.keys(handlers) as JobKind[];
  const pools = new Map(kinds.map((kind): [JobKind, Pool] => [kind, newPool(kind)]));
  const running = new Set<Promise<void>>();
  const stopping = new AbortController();
  let started = false;

  const poolOf = (kind: JobKind): Pool => pools.get(kind) as Pool;

  const wake = (kind: JobKind): void => {
    const pool = poolOf(kind);
    if (!started || stopping.signal.aborted) return;
    if (pool.claiming) pool.again = true;
    else void fill(pool);
  };

  const fill = async (pool: Pool): Promise<void> => {
    pool.claiming = true;
    do {
      pool.again = false;
      try {
        await claimInto(pool);
      } catch (error) {
        app.log.error({ kind: pool.kind, err: messageOf(error) }, "jobs cannot be claimed; trying again");
        sleep(pool, RECORD_AGAIN_MS);
      }
    } while (pool.again && !stopping.signal.aborted);
    pool.claiming = false;
  };

  const claimInto = async (pool: Pool): Promise<void> => {
    const free = handlers[pool.kind].slots - pool.used;
    if (free <= 0) return;
    const jobs = await app.write((tx) => claim(tx, pool.kind, { now: app.now(), limit: free }));
    pool.used += jobs.length;
    for (const job of jobs) run(job);
    if (jobs.length === free) return;
    const next = await nextRunAt(app.db, pool.kind);
    sleep(pool, next === null ? MAX_SLEEP_MS : Math.max(0, next - app.now()) * 1_000);
  };

  const sleep = (pool: Pool, ms: number): void => {
    clearTimeout(pool.timer);
    pool.timer = setTimeout(() => wake(pool.kind), Math.min(ms, MAX_SLEEP_MS));
    pool.timer.unref();
  };

  const run = (job: Job): void => {
    const work = runJob(app, handlers, job, stopping.signal).finally(() => {
      running.delete(work);
      poolOf(job.kind).used -= 1;
      wake(job.kind);
    });
    running.add(work);
  };

  return {
    async start() {
      await app.write(voidLeases);
      started = true;
      for (const kind of kinds) wake(kind);
    },
    wake,
    reserve(kind) {
      const pool = poolOf(kind);
      if (stopping.signal.aborted || pool.used >= handlers[kind].slots) return false;
      pool.used += 1;
      return true;
    },
    release(kind) {
      poolOf(kind).used -= 1;
      wake(kind);
    },
    run,
    async drain() {
      do {
        await Promise.all([...pools.values()].map((pool) => (pool.claiming ? undefined : fill(pool))));
        await Promise.all(running);
      } while (running.size > 0 || [...pools.values()].some((pool) => pool.claiming));
    },
    async [Symbol.asyncDispose]() {
      started = false;
      for (const pool of pools.values()) clearTimeout(pool.timer);
      await Promise.race([Promise.all(running), timeout(DRAIN_MS)]);
      stopping.abort();
      await Promise.all(running);
    },
  };
}

function timeout(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

function newPool(kind: JobKind): Pool {
  return { kind, used: 0, claiming: false, again: false, timer: undefined };
}

async function runJob(app: App, handlers: JobHandlers, job: Job, stopping: AbortSignal): Promise<void> {
  const rules = JOB_RULES[job.kind];
  if (job.attempts > rules.max_attempts) {
    await bury(app, handlers, job, `The server stopped ${rules.max_attempts} times in the middle of this.`);
    return;
  }
  const lease = AbortSignal.timeout(rules.lease_seconds * 1_000);
  try {
    await handlerOf(handlers, job).run(app, job, AbortSignal.any([stopping, lease]));
  } catch (error) {
    if (error instanceof LeaseLostError) app.log.warn({ job_id: job.id }, error.message);
    else if (stopping.aborted) await record(app, (tx) => returnJob(tx, job), stopping);
    else await fail(app, handlers, job, error);
  }
}

async function fail(app: App, handlers: JobHandlers, job: Job, error: unknown): Promise<void> {
  app.log.error({ job_id: job.id, kind: job.kind, attempt: job.attempts, err: error }, "job failed");
  if (job.attempts >= JOB_RULES[job.kind].max_attempts) return bury(app, handlers, job, messageOf(error));
  const run_at = app.now() + backoffSeconds(job.attempts);
  await record(app, (tx) => postponeJob(tx, job, { run_at, error: messageOf(error) }));
}

async function bury(app: App, handlers: JobHandlers, job: Job, error: string): Promise<void> {
  await record(app, async (tx) => {
    await buryJob(tx, job, error);
    await handlerOf(handlers, job).giveUp?.(app, tx, job, error);
  });
}

/** Writes down what became of a job, as often as it takes: until then the job keeps its slot. */
async function record(app: App, operation: (tx: Db) => Promise<void>, until?: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await app.write(operation);
    } catch (error) {
      app.log.error({ err: messageOf(error) }, "the outcome of a job cannot be written; trying again");
      if (until?.aborted) return;
      await Bun.sleep(RECORD_AGAIN_MS);
    }
  }
}

function handlerOf(handlers: JobHandlers, job: Job): JobHandler<JobKind> {
  return handlers[job.kind] as unknown as JobHandler<JobKind>;
}
