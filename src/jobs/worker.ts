import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { withoutLogFields } from "../lib/log.ts";
import { watchClock } from "./clock.ts";
import { waitAtMost } from "../lib/deadline.ts";
import { hastenThese } from "./hasten.ts";
import { lookThroughDaily, mendHourly } from "./mend.ts";
import { createPool, type Pool } from "./pool.ts";
import type { JobKind } from "./kinds.ts";
import type { Job, Newcomer } from "./queue.ts";
import { CANCELLED, type JobHandlers, roomOf, runJob, STOPPING } from "./run-job.ts";
import type { Use } from "./shares.ts";
import { createSuspects, type Suspects, WATCH_MS } from "./suspects.ts";

/** How long a stop waits, step by step. The systemd unit and the compose file in `deploy` allow more than the sum. */
const PATIENCE = {
  /** For work in progress to end. */
  drain_ms: 20_000,
  /** Then for work whose signal was aborted. What still runs is redone at the next start. */
  abandon_ms: 5_000,
  /** Then for jobs marked by `waitForWord`. */
  word_ms: 40_000,
};
/** How often to check whether a command line changed the queue, the clock was set, or a lock is gone. */
const LOOK_MS = 1_000;

export interface JobWorker extends AsyncDisposable {
  /** Starts to claim jobs; before that, only `run` and `drain` work. */
  start(): void;
  /** Looks for due jobs of a kind now; see `Pool.wake`. */
  wake(kind: JobKind, newcomer?: Newcomer): void;
  wakeAll(): void;
  /**
   * Reserves a slot for a job that the caller enqueues as `claimed`. `run` or `release` must follow directly after the
   * commit: the next claim takes a claimed job that does not run as lost.
   */
  reserve(kind: JobKind, use: Use): boolean;
  release(kind: JobKind, use: Use): void;
  run(job: Job): void;
  /** See `Pool.claimNext` and `Pool.follow`. */
  claimNext(tx: Db, ended: Job): Promise<Job | undefined>;
  follow(job: Job): void;
  /**
   * Called when a handler returns a job because its target has no room. Until `room` resolves, no job of its account
   * starts there.
   */
  waitForRoom(job: Job, room: Promise<void>): void;
  /**
   * Called when a job has sent something that cannot be taken back and waits for the answer: if it were redone, that
   * would arrive twice. A stop waits longer for such a job.
   */
  waitForWord(job: Job): void;
  /** Aborts the work on a message whose job has been deleted. */
  cancel(message_id: string): void;
  /** Runs all due jobs, and those that they make due, until none is left. */
  drain(): Promise<void>;
  /**
   * Returns whether a job that runs on and on should end: it waits for what is in progress, and starts nothing more.
   */
  isStopping(): boolean;
}

interface WorkerOptions {
  patience?: typeof PATIENCE;
  watch_ms?: number;
}

export function createWorker(app: App, handlers: JobHandlers, options: WorkerOptions = {}): JobWorker {
  const running: Running = new Map();
  const unsaid = new WeakSet<Job>();
  const suspects = suspectsOf(app, options, () => stopping);
  const pools = new Map<JobKind, Pool>();
  let started = false;
  let stopping = false;
  let ended = 0;
  let look: ReturnType<typeof setInterval> | undefined;

  const poolOf = (kind: JobKind): Pool => pools.get(kind) as Pool;
  const wake = (kind: JobKind, newcomer?: Newcomer) => void (started && poolOf(kind).wake(newcomer));
  const allPools = (work: (pool: Pool) => Promise<void>) => Promise.all([...pools.values()].map(work));

  const run = (job: Job): void => {
    const stop = new AbortController();
    const work = runJob(app, handlers, job, { stop, suspects }).finally(() => {
      ended += 1;
      running.delete(work);
      poolOf(job.kind).release(job);
    });
    running.set(work, { job, stop });
  };

  const wakeAll = () => (started ? pools.forEach((pool) => pool.wake()) : undefined);

  // The log fields of the caller that wakes a pool, or of the job before, do not belong to the new job.
  const begin = (job: Job): void => withoutLogFields(() => run(job));
  const ids = () => idsOf(running);
  for (const kind of Object.keys(handlers) as JobKind[])
    pools.set(kind, createPool(app, { kind, room: roomOf(handlers[kind]), run: begin, running: ids }));

  return {
    start() {
      started = true;
      look = lookNowAndThen(app, handlers, wakeAll);
      for (const pool of pools.values()) pool.start();
    },
    wake,
    wakeAll,
    reserve: (kind, use) => poolOf(kind).reserve(use),
    release: (kind, use) => poolOf(kind).release(use),
    run,
    claimNext: (tx, ended) => poolOf(ended.kind).claimNext(tx, ended),
    follow: (job) => poolOf(job.kind).follow(job),
    waitForRoom: (job, room) => poolOf(job.kind).close(job, room),
    waitForWord: (job) => void unsaid.add(job),
    cancel: (message_id) => cancelRun(running, message_id, () => wake("route_message")),
    async drain() {
      for (;;) {
        const before = ended;
        await allPools((pool) => pool.fill());
        if (running.size > 0) await Promise.race(running.keys());
        // A job that ended after its pool's search may be due again, or have made others due.
        else if (ended === before) return;
      }
    },
    isStopping: () => stopping,
    async [Symbol.asyncDispose]() {
      stopping = true;
      clearInterval(look);
      await allPools((pool) => pool.stop());
      await endAll(running, { unsaid, patience: options.patience ?? PATIENCE });
    },
  };
}

/** Creates the suspects. If calling a job fails, it is looked at again a little later anyway. */
function suspectsOf(app: App, { watch_ms = WATCH_MS }: WorkerOptions, isStopping: () => boolean): Suspects {
  return createSuspects({
    watch_ms,
    call: (kind, ids) => {
      if (!isStopping()) void hastenThese(app, { kind, ids }).catch(() => undefined);
    },
  });
}

type Running = Map<Promise<void>, { job: Job; stop: AbortController }>;

/** Aborts the run of a message. Calls `wake`, because other jobs of the conversation may start now. */
function cancelRun(running: Running, message_id: string, wake: () => void): void {
  for (const { job, stop } of running.values())
    if (job.kind === "route_message" && (job as Job<"route_message">).payload.message_id === message_id)
      stop.abort(CANCELLED);
  wake();
}

function idsOf(running: Running): Set<string> {
  return new Set([...running.values()].map(({ job }) => job.id));
}

async function endAll(
  running: Running,
  { unsaid, patience }: { unsaid: WeakSet<Job>; patience: typeof PATIENCE },
): Promise<void> {
  await waitAtMost(patience.drain_ms, Promise.all(running.keys()));
  for (const { stop } of running.values()) stop.abort(STOPPING);
  await waitAtMost(patience.abandon_ms, Promise.all(running.keys()));
  await waitAtMost(patience.word_ms, allSaid(running, unsaid));
}

/** Waits for the jobs in `unsaid`, including those added meanwhile. */
async function allSaid(running: Running, unsaid: WeakSet<Job>): Promise<void> {
  for (;;) {
    const waiting = [...running].filter(([, { job }]) => unsaid.has(job));
    if (waiting.length === 0) return;
    await Promise.race(waiting.map(([work]) => work));
  }
}

/** Checks regularly for changes from outside: another process writes, a lock is gone, or the clock is set. */
function lookNowAndThen(
  app: App,
  handlers: JobHandlers,
  wakeAll: () => void,
): ReturnType<typeof setInterval> {
  const lookAtClock = watchClock(app, handlers);
  const mend = mendHourly(app, handlers);
  const lookThrough = lookThroughDaily(app);
  // Counts from now on: the pools' first search sees what was written before.
  app.upkeep.changedElsewhere();
  const timer = setInterval(() => {
    if (app.upkeep.changedElsewhere()) wakeAll();
    // A refused write logs the reason, even if nothing else is written.
    if (app.lockGone()) void app.write(() => Promise.resolve()).catch(() => undefined);
    // Errors are ignored: callers that cannot write are told so, and the jobs are planned again at the next leap or
    // start.
    void lookAtClock().catch(() => undefined);
    void mend().catch(() => undefined);
    void lookThrough();
  }, LOOK_MS);
  timer.unref();
  return timer;
}
