import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { withoutLogFields } from "../log.ts";
import { watchClock } from "./clock.ts";
import { createPool, type Pool } from "./pool.ts";
import type { JobKind } from "./kinds.ts";
import type { Job } from "./queue.ts";
import { type JobHandlers, roomOf, runJob, STOPPING } from "./run-job.ts";
import type { Use } from "./shares.ts";

/** How long a stop waits for work in progress before it hands the work back to the table. */
const DRAIN_MS = 20_000;
/** How long it then waits for work that was told to stop. What still goes on is redone at the next start. */
const ABANDON_MS = 5_000;
/** How soon it is seen that a command line changed the queue, or somebody the clock. */
const LOOK_MS = 1_000;

export interface JobWorker extends AsyncDisposable {
  /** Begins to work on its own; before that, only `run` and `drain` do. */
  start(): void;
  /** Looks for due jobs of a kind now; `account` says whose job is new. */
  wake(kind: JobKind, account?: string): void;
  wakeAll(): void;
  /** Takes a free slot for a job the caller enqueues as `claimed`; follow with `run` or `release`. */
  reserve(kind: JobKind, use: Use): boolean;
  release(kind: JobKind, use: Use): void;
  run(job: Job): void;
  /** See `Pool.claimNext` and `Pool.follow`. */
  claimNext(tx: Db, ended: Job): Promise<Job | undefined>;
  follow(job: Job): void;
  /** Runs whatever is due, and what that makes due, until nothing is left. */
  drain(): Promise<void>;
  /** Whether a job that goes on and on should end: what is on its way is waited for, and nothing more is begun. */
  isStopping(): boolean;
}

export function createWorker(app: App, handlers: JobHandlers): JobWorker {
  const running = new Map<Promise<void>, AbortController>();
  const pools = new Map<JobKind, Pool>();
  let started = false;
  let stopping = false;
  let look: ReturnType<typeof setInterval> | undefined;

  const poolOf = (kind: JobKind): Pool => pools.get(kind) as Pool;
  const allPools = (work: (pool: Pool) => Promise<void>) => Promise.all([...pools.values()].map(work));

  const run = (job: Job): void => {
    const stop = new AbortController();
    const work = runJob(app, handlers, job, stop).finally(() => {
      running.delete(work);
      poolOf(job.kind).release(job);
    });
    running.set(work, stop);
  };

  const wakeAll = (): void => {
    if (started) for (const pool of pools.values()) pool.wake();
  };

  // Whoever wakes a pool, or is followed by another job, has nothing to do with what is then begun.
  const begin = (job: Job): void => withoutLogFields(() => run(job));
  for (const kind of Object.keys(handlers) as JobKind[])
    pools.set(kind, createPool(app, { kind, room: roomOf(handlers[kind]), run: begin }));

  return {
    start() {
      started = true;
      look = lookNowAndThen(app, handlers, wakeAll);
      for (const pool of pools.values()) pool.start();
    },
    wake(kind, account) {
      if (started) poolOf(kind).wake(account);
    },
    wakeAll,
    reserve: (kind, use) => poolOf(kind).reserve(use),
    release: (kind, use) => poolOf(kind).release(use),
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
    isStopping: () => stopping,
    async [Symbol.asyncDispose]() {
      stopping = true;
      clearInterval(look);
      await allPools((pool) => pool.stop());
      await within(DRAIN_MS, Promise.all(running.keys()));
      for (const stop of running.values()) stop.abort(STOPPING);
      await within(ABANDON_MS, Promise.all(running.keys()));
    },
  };
}

/** At what happens to this process unasked: another one writes, or the clock is set. */
function lookNowAndThen(
  app: App,
  handlers: JobHandlers,
  wakeAll: () => void,
): ReturnType<typeof setInterval> {
  const lookAtClock = watchClock(app, handlers);
  // From now on: what was written before is seen by the first look of the pools.
  app.changedElsewhere();
  const timer = setInterval(() => {
    if (app.changedElsewhere()) wakeAll();
    // Whoever cannot write is told so, and comes again; what waits is tried with the next leap or start.
    void lookAtClock().catch(() => undefined);
  }, LOOK_MS);
  timer.unref();
  return timer;
}

async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([work, promise]);
  clearTimeout(timer);
}
