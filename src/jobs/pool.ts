import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import { claim, type Job, type JobKind, type Share } from "./queue.ts";
import { createShares, type Shares } from "./shares.ts";

/** How long to wait before trying again to claim when the database refused. */
const CLAIM_AGAIN_MS = 1_000;
/** Longest sleep before looking at the table again; also the longest a lease that ran out goes unnoticed. */
const MAX_SLEEP_MS = 60_000;

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
  /** From now on `fill` also happens by itself: when a slot gets free, and when a job falls due. */
  start(): void;
  /** Claims nothing any more. */
  stop(): Promise<void>;
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
  let state: "manual" | "started" | "stopped" = "manual";
  let timer: ReturnType<typeof setTimeout> | undefined;

  const fill = joined(async () => {
    if (state === "stopped" || used >= slots) return;
    let taken = 0;
    let jobs: Job[] = [];
    try {
      const found = await claimJobs(app, kind, shares, () => {
        taken = Math.max(0, slots - used);
        used += taken;
        return taken;
      });
      jobs = found.jobs;
      backlog = jobs.length === taken;
      sleep(found.next_at === null ? MAX_SLEEP_MS : found.next_at * 1_000 - app.nowMs());
    } catch (error) {
      app.log.error({ kind, err: messageOf(error) }, "jobs cannot be claimed; trying again");
      sleep(CLAIM_AGAIN_MS);
    }
    used -= taken - jobs.length;
    for (const job of jobs) run(job);
  });

  const sleep = (ms: number): void => {
    clearTimeout(timer);
    if (state !== "started") return;
    timer = setTimeout(() => void fill(), Math.min(Math.max(0, ms), MAX_SLEEP_MS));
    timer.unref();
  };

  return {
    fill,
    wake() {
      backlog = true;
      void fill();
    },
    reserve(share) {
      if (state === "stopped" || backlog || used >= slots || !shares.hasRoom(share)) return false;
      used += 1;
      shares.take(share);
      return true;
    },
    release(share) {
      used -= 1;
      shares.giveBack(share);
      if (state === "started") void fill();
    },
    start() {
      state = "started";
      void fill();
    },
    async stop() {
      state = "stopped";
      clearTimeout(timer);
      await fill();
    },
  };
}

/** Claims as many jobs as `take` says once it is their turn to be claimed. */
async function claimJobs(app: App, kind: JobKind, shares: Shares, take: () => number) {
  let jobs: Job[] = [];
  try {
    const found = await app.write(async (tx) => {
      const claimed = await claim(tx, kind, {
        now: app.now(),
        steady_now: app.steadyNow(),
        limit: take(),
        running: shares.running,
      });
      // At once, not after the commit: a newcomer must not be counted without them.
      jobs = claimed.jobs;
      for (const { share } of jobs) shares.take(share);
      return claimed;
    });
    shares.setWaiting(found.full);
    return found;
  } catch (error) {
    for (const { share } of jobs) shares.giveBack(share);
    throw error;
  }
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
