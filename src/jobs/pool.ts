import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import type { Db } from "../db/database.ts";
import { isStorageFault } from "../db/storage-faults.ts";
import type { JobKind } from "./kinds.ts";
import { claim, claimPending } from "./claim.ts";
import type { Job } from "./queue.ts";
import { createUses, hasRoom, type Room, type Use, type Uses } from "./shares.ts";

/** How long to wait before trying again to claim when the database refused. */
const CLAIM_AGAIN_MS = 1_000;
/** Longest sleep before looking at the table again; also the longest a lease that ran out goes unnoticed. */
const MAX_SLEEP_MS = 60_000;

/** The slots for one kind of job, and the loop that fills them. */
export interface Pool {
  /** Looks for due jobs; resolves when as many run as there are, or as there are slots for. */
  fill(): Promise<void>;
  /** Says that a job has been enqueued, for this account. */
  wake(account?: string): void;
  /** Takes a free slot and what else `use` says; false when that is not there, or is others' turn. */
  reserve(use: Use): boolean;
  /** Returns it to the pool: what was reserved, or what a job had that has ended. */
  release(use: Use): void;
  /** Claims a job that waits, in the transaction that ends another: it spares a commit. After the commit, `follow` it. */
  claimNext(tx: Db, ended: Job): Promise<Job | undefined>;
  /** Begins it; its slot is the one that the ended job is about to give back. */
  follow(job: Job): void;
  /** From now on `fill` also happens by itself: when a slot gets free, and when a job falls due. */
  start(): void;
  /** Claims nothing any more. */
  stop(): Promise<void>;
}

interface PoolOptions {
  kind: JobKind;
  room: Room;
  /** Begins a job in a slot that has been taken for it. */
  run: (job: Job) => void;
}

export function createPool(app: App, { kind, room, run }: PoolOptions): Pool {
  const slots = createSlots(room.slots);
  const uses = createUses();
  /** By each job that ends, the one claimed in its place: it has what that had from the claim on. */
  const successors = new Map<Use, Job>();
  const followed = new WeakSet<Job>();
  /** Of those, older work waits: a newcomer of theirs must wait its turn. */
  let waiting = new Set<string>();
  /** From the moment a job is enqueued until a claim finds none left: a caller must not take a slot before it. */
  let backlog = false;
  let looked_ms = 0;
  let state: "manual" | "started" | "stopped" = "manual";

  const fill = joined(async () => {
    if (state === "stopped" || slots.free() <= 0) return;
    looked_ms = app.nowMs();
    const { full, jobs, taken, sleep_ms } = await claimJobs(app, kind, { room, uses, slots });
    waiting = full ?? waiting;
    backlog = full === null ? backlog : jobs.length === taken;
    alarm.set(sleep_ms);
    slots.giveBack(taken - jobs.length);
    for (const job of jobs) run(job);
  });

  const alarm = createAlarm(() => state === "started" && fill());
  /** Once in a while `fill` has to look itself: it also frees the leases that ran out. */
  const mayFollow = () => state === "started" && backlog && app.nowMs() - looked_ms < MAX_SLEEP_MS;

  return {
    fill,
    wake(account) {
      // Older work of the same account waits for one of its jobs to end: then it is looked for.
      if (account !== undefined && waiting.has(account)) return;
      backlog = true;
      void fill();
    },
    reserve(use) {
      if (state === "stopped" || backlog || waiting.has(use.share?.account ?? "")) return false;
      if (!hasRoom(use, { uses, room, free: slots.free() })) return false;
      slots.take();
      uses.add(use);
      return true;
    },
    release(use) {
      slots.giveBack(1);
      const next = successors.get(use);
      successors.delete(use);
      if (next === undefined) uses.remove(use);
      // It was claimed in a transaction that was undone.
      else if (!followed.has(next)) uses.remove(next);
      if (state === "started") void fill();
    },
    async claimNext(tx, ended) {
      const undone = successors.get(ended);
      if (undone !== undefined) {
        successors.delete(ended);
        uses.remove(undone);
        uses.add(ended);
      }
      if (!mayFollow()) return undefined;
      const next = await claimOne(app, tx, { room, uses, ended, free: slots.free() + 1 });
      if (next === undefined) return undefined;
      // At once, not after the commit: others that end in the same one must not be counted without it.
      successors.set(ended, next);
      uses.remove(ended);
      uses.add(next);
      return next;
    },
    follow(job) {
      // It stays claimed, and the next start frees it.
      if (state === "stopped") return;
      slots.take();
      followed.add(job);
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

/** Counts slots taken: by jobs, by callers that reserved one, and by a claim that is being committed. */
function createSlots(count: number) {
  let used = 0;
  return {
    free: () => count - used,
    takeFree(): number {
      const taken = Math.max(0, count - used);
      used += taken;
      return taken;
    },
    take: () => void (used += 1),
    giveBack: (number: number) => void (used -= number),
  };
}

/**
 * Claims jobs for the slots that are free once it is its turn; `taken` are those, `sleep_ms` until it is worth looking
 * again. `full` is null when the database refused.
 */
async function claimJobs(
  app: App,
  kind: JobKind,
  { room, uses, slots }: { room: Room; uses: Uses; slots: ReturnType<typeof createSlots> },
): Promise<{ jobs: Job[]; taken: number; full: Set<string> | null; sleep_ms: number }> {
  let jobs: Job[] = [];
  let taken = 0;
  try {
    const { next_at, full } = await app.write(async (tx) => {
      taken = slots.takeFree();
      const claimed = await claim(tx, kind, { ...clocksOf(app), limit: taken, free: taken, room, uses });
      // At once, not after the commit: a newcomer must not be counted without them.
      jobs = claimed.jobs;
      for (const job of jobs) uses.add(job);
      return claimed;
    });
    const sleep_ms = next_at === null ? MAX_SLEEP_MS : next_at * 1_000 - app.nowMs();
    return { jobs, taken, full, sleep_ms };
  } catch (error) {
    // The database says itself, once, what is wrong with its disk.
    if (!isStorageFault(error))
      app.log.error({ kind, err: messageOf(error) }, "jobs cannot be claimed; trying again");
    for (const job of jobs) uses.remove(job);
    return { jobs: [], taken, full: null, sleep_ms: CLAIM_AGAIN_MS };
  }
}

interface Following {
  room: Room;
  uses: Uses;
  ended: Job;
  free: number;
}

/** One job for the slot that `ended` gives back, with the rest of what it had. */
async function claimOne(app: App, tx: Db, { room, uses, ended, free }: Following): Promise<Job | undefined> {
  const left = uses.fork();
  left.remove(ended);
  const { jobs } = await claimPending(tx, ended.kind, { ...clocksOf(app), limit: 1, free, room, uses: left });
  return jobs[0];
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
