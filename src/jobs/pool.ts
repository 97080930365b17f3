import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import type { Db } from "../db/database.ts";
import { isStorageFault } from "../db/storage-faults.ts";
import type { JobKind } from "./kinds.ts";
import { claim, claimPending, type Job, type Share } from "./queue.ts";
import { createShares, type Shares } from "./shares.ts";

/** How long to wait before trying again to claim when the database refused. */
const CLAIM_AGAIN_MS = 1_000;
/** Longest sleep before looking at the table again; also the longest a lease that ran out goes unnoticed. */
const MAX_SLEEP_MS = 60_000;
/** How soon after a look that found nobody else somebody is seen whose job has fallen due since. */
const LOOK_FOR_OTHERS_MS = 1_000;

/** The slots for one kind of job, and the loop that fills them. */
export interface Pool {
  /** Looks for due jobs; resolves when as many run as there are, or as there are slots for. */
  fill(): Promise<void>;
  /** Says that a job has been enqueued. */
  wake(): void;
  /** Takes a free slot of an account's share; false when there is none. */
  reserve(share: Share | null): boolean;
  /** Gives a slot back: one that was reserved, or that of a job that has ended. */
  release(share: Share | null): void;
  /** Claims a job that waits, in the transaction that ends another: it spares a commit. After the commit, `follow` it. */
  claimNext(tx: Db, ended: Job): Promise<Job | undefined>;
  /** Begins it; its slot is the one that the ended job is about to give back. */
  follow(job: Job): void;
  /** From now on `fill` also happens by itself: when a slot gets free, and when a job falls due. */
  start(): void;
  /** Claims nothing any more. */
  stop(): Promise<void>;
}

/** Until when nobody is looked for but those whose jobs run; a job that is enqueued ends it. */
interface Others {
  none_until_ms: number;
}

interface PoolOptions {
  kind: JobKind;
  slots: number;
  /** Begins a job in a slot that has been taken for it. */
  run: (job: Job) => void;
}

export function createPool(app: App, { kind, slots, run }: PoolOptions): Pool {
  /** Slots taken: by jobs, by callers that reserved one, and by a claim that is being committed. */
  let used = 0;
  const shares = createShares();
  /** From the moment a job is enqueued until a claim finds none left: a caller must not take a slot before it. */
  let backlog = false;
  const others: Others = { none_until_ms: 0 };
  let looked_ms = 0;
  let state: "manual" | "started" | "stopped" = "manual";

  const fill = joined(async () => {
    if (state === "stopped" || used >= slots) return;
    looked_ms = app.nowMs();
    let taken = 0;
    const { ok, jobs, sleep_ms } = await claimJobs(app, kind, shares, () => {
      taken = Math.max(0, slots - used);
      used += taken;
      return taken;
    });
    if (ok) backlog = jobs.length === taken;
    alarm.set(sleep_ms);
    used -= taken - jobs.length;
    for (const job of jobs) run(job);
  });

  const alarm = createAlarm(() => state === "started" && fill());
  /** Once in a while `fill` has to look itself: it also frees the leases that ran out. */
  const mayFollow = () => state === "started" && backlog && app.nowMs() - looked_ms < MAX_SLEEP_MS;

  return {
    fill,
    wake() {
      backlog = true;
      others.none_until_ms = 0;
      void fill();
    },
    reserve(share) {
      if (state === "stopped" || backlog || used >= slots || !shares.hasRoom(share, slots - used))
        return false;
      used += 1;
      shares.take(share);
      return true;
    },
    release(share) {
      used -= 1;
      shares.giveBack(share);
      if (state === "started") void fill();
    },
    claimNext: async (tx, ended) => (mayFollow() ? claimOne(app, tx, { shares, ended, others }) : undefined),
    follow(job) {
      // It stays claimed, and the next start frees it.
      if (state === "stopped") return;
      used += 1;
      shares.take(job.share);
      run(job);
    },
    start() {
      state = "started";
      void fill();
    },
    async stop() {
      state = "stopped";
      alarm.clear();
      await fill();
    },
  };
}

/** Claims as many jobs as `take` says once it is their turn to be claimed; `sleep_ms` until it is worth looking again. */
async function claimJobs(app: App, kind: JobKind, shares: Shares, take: () => number) {
  let jobs: Job[] = [];
  try {
    const { next_at, full } = await app.write(async (tx) => {
      const claimed = await claim(tx, kind, { ...clocksOf(app), limit: take(), running: shares.running });
      // At once, not after the commit: a newcomer must not be counted without them.
      jobs = claimed.jobs;
      for (const { share } of jobs) shares.take(share);
      return claimed;
    });
    shares.setWaiting(full);
    const sleep_ms = next_at === null ? MAX_SLEEP_MS : next_at * 1_000 - app.nowMs();
    return { ok: true, jobs, sleep_ms };
  } catch (error) {
    // The database says itself, once, what is wrong with its disk.
    if (!isStorageFault(error))
      app.log.error({ kind, err: messageOf(error) }, "jobs cannot be claimed; trying again");
    for (const { share } of jobs) shares.giveBack(share);
    return { ok: false, jobs: [], sleep_ms: CLAIM_AGAIN_MS };
  }
}

/** One job for the slot that `ended` gives back, and of its account's share. */
async function claimOne(
  app: App,
  tx: Db,
  { shares, ended, others }: { shares: Shares; ended: Job; others: Others },
): Promise<Job | undefined> {
  const running = (account: string): number =>
    shares.running(account) - (account === ended.share?.account ? 1 : 0);
  const alone = performance.now() < others.none_until_ms;
  const claimed = await claimPending(tx, ended.kind, { ...clocksOf(app), limit: 1, running, alone });
  if (claimed.alone && !alone) others.none_until_ms = performance.now() + LOOK_FOR_OTHERS_MS;
  return claimed.jobs[0];
}

function clocksOf(app: App) {
  return { now: app.now(), steady_now: app.steadyNow(), leaseEnd: app.steadyAfter };
}

/** Rings once, after the time it was last set to, `MAX_SLEEP_MS` at the most; it keeps no process alive. */
function createAlarm(ring: () => unknown) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return {
    set(ms: number): void {
      clearTimeout(timer);
      timer = setTimeout(ring, Math.min(Math.max(0, ms), MAX_SLEEP_MS));
      timer.unref();
    },
    clear: () => clearTimeout(timer),
  };
}

/** `work` one at a time: all calls that come in the middle of it share one more round after it. */
function joined(work: () => Promise<void>): () => Promise<void> {
  let rounds: Promise<void> | undefined;
  let again = false;
  const repeat = async (): Promise<void> => {
    do {
      again = false;
      await work();
    } while (again);
    // In the same tick as the look at `again`, or somebody's call would be lost in between.
    rounds = undefined;
  };
  return () => {
    again = true;
    return (rounds ??= repeat());
  };
}
