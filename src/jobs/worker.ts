import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { createPool, type Pool } from "./pool.ts";
import type { JobKind } from "./kinds.ts";
import type { Job, Share } from "./queue.ts";
import { type JobHandlers, runJob, STOPPING } from "./run-job.ts";

/** How long a stop waits for work in progress before it hands the work back to the table. */
const DRAIN_MS = 20_000;
/** How long it then waits for work that was told to stop. What still goes on is redone at the next start. */
const ABANDON_MS = 5_000;

export interface JobWorker extends AsyncDisposable {
  /** Begins to work on its own; before that, only `run` and `drain` do. */
  start(): void;
  /** Looks for due jobs of a kind now. */
  wake(kind: JobKind): void;
  /** Takes a free slot for a job the caller enqueues as `claimed`; follow with `run` or `release`. */
  reserve(kind: JobKind, share: Share | null): boolean;
  release(kind: JobKind, share: Share | null): void;
  run(job: Job): void;
  /** See `Pool.claimNext` and `Pool.follow`. */
  claimNext(tx: Db, ended: Job): Promise<Job | undefined>;
  follow(job: Job): void;
  /** Runs whatever is due, and what that makes due, until nothing is left. */
  drain(): Promise<void>;
}

export function createWorker(app: App, handlers: JobHandlers): JobWorker {
  const running = new Map<Promise<void>, AbortController>();
  const pools = new Map<JobKind, Pool>();
  let started = false;

  const poolOf = (kind: JobKind): Pool => pools.get(kind) as Pool;
  const allPools = (work: (pool: Pool) => Promise<void>) => Promise.all([...pools.values()].map(work));

  const run = (job: Job): void => {
    const stop = new AbortController();
    const work = runJob(app, handlers, job, stop).finally(() => {
      running.delete(work);
      poolOf(job.kind).release(job.share);
    });
    running.set(work, stop);
  };

  for (const kind of Object.keys(handlers) as JobKind[])
    pools.set(kind, createPool(app, { kind, slots: handlers[kind].slots, run }));

  return {
    start() {
      started = true;
      for (const pool of pools.values()) pool.start();
    },
    wake(kind) {
      if (started) poolOf(kind).wake();
    },
    reserve: (kind, share) => poolOf(kind).reserve(share),
    release: (kind, share) => poolOf(kind).release(share),
    run,
    claimNext: (tx, ended) => poolOf(ended.kind).claimNext(tx, ended),
    follow: (job) => poolOf(job.kind).follow(job),
    async drain() {
      for (;;) {
        await allPools((pool) => pool.fill());
        if (running.size === 0) return;
        await Promise.race(running.keys());
      }
    },
    async [Symbol.asyncDispose]() {
      await allPools((pool) => pool.stop());
      await within(DRAIN_MS, Promise.all(running.keys()));
      for (const stop of running.values()) stop.abort(STOPPING);
      await within(ABANDON_MS, Promise.all(running.keys()));
    },
  };
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([work, promise]);
  clearTimeout(timer);
}
