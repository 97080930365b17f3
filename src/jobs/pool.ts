import type { App } from "../app.ts";
import { messageOf } from "../errors.ts";
import type { Db } from "../db/database.ts";
import { isStorageFault } from "../db/storage-faults.ts";
import { createKeptMemory, type KeptMemory } from "./kept-memory.ts";
import type { JobKind } from "./kinds.ts";
import { claim, claimPending, type FullLines } from "./claim.ts";
import { type Job, type Newcomer, newcomerOf } from "./queue.ts";
import { createUses, hasRoom, type Room, type Use, type Uses } from "./shares.ts";
import { createTurns, type Turns } from "./turns.ts";

/** How long to wait before trying again to claim when the database refused. */
const CLAIM_AGAIN_MS = 1_000;
/** Longest sleep before looking at the table again; also the longest a lease that ran out goes unnoticed. */
const MAX_SLEEP_MS = 60_000;
/**
 * How soon to look at the next accounts while slots are free and the jobs that were looked at wait for something else.
 */
const LOOK_ON_MS = 20;

/** The slots for one kind of job, and the loop that fills them. */
export interface Pool {
  /** Looks for due jobs; resolves when as many run as there are, or as there are slots for. */
  fill(): Promise<void>;
  /**
   * Says that a job has been enqueued. Where older work of its line waits for a job to end, no look is made before that
   * end.
   */
  wake(newcomer?: Newcomer): void;
  /** Takes a free slot and what else `use` says; false when there is none, or when it is the turn of others. */
  reserve(use: Use): boolean;
  /** Returns a slot and what else `use` says: what was reserved, or what a job had that has ended. */
  release(use: Use): void;
  /**
   * Claims a job that waits, in the transaction that ends another: this spares a commit. Call `follow` with it at once
   * after the commit.
   */
  claimNext(tx: Db, ended: Job): Promise<Job | undefined>;
  /**
   * Begins the claimed job in the slot that the ended job is about to give back. In a stopped pool it stays claimed:
   * the next start frees it.
   */
  follow(job: Job): void;
  /** Begins no more jobs of a job's account at its target until `room` resolves. */
  close(job: Job, room: Promise<void>): void;
  /** From now on `fill` also happens by itself: when a slot gets free, and when a job falls due. */
  start(): void;
  /** Has the pool claim nothing any more. */
  stop(): Promise<void>;
}

/**
 * What a claim left in the table. "more": jobs may be due that a slot must go to first; this holds from the moment a
 * job is enqueued, so that no caller takes a slot before it. "some": jobs are due that have no room. "none": a slot
 * that gets free changes nothing. What falls due later is told by the alarm.
 */
type Left = "more" | "some" | "none";

interface PoolOptions {
  kind: JobKind;
  room: Room;
  /** Begins a job in a slot that has been taken for it. */
  run: (job: Job) => void;
  /** The ids of all jobs that have begun and not ended. */
  running: () => Set<string>;
}

export function createPool(app: App, { kind, room, run, running }: PoolOptions): Pool {
  const slots = createSlots(room.slots);
  const uses = createUses();
  const order = { room, turns: createTurns(), kept: createKeptMemory(uses) };
  const succession = createSuccession(uses);
  /** Lines whose older work waits: a newcomer that takes no less than it must wait its turn. */
  let waiting: FullLines = new Map();
  const mustWait = ({ line, weight }: Newcomer): boolean => weight >= (waiting.get(line) ?? Infinity);
  let left: Left = "some";
  let looked_ms = 0;
  let state: "manual" | "started" | "stopped" = "manual";

  const fill = joined(async () => {
    if (state === "stopped" || slots.free() <= 0) return;
    looked_ms = app.nowMs();
    const found = await claimJobs(app, kind, { ...order, uses, slots, running });
    waiting = found.full ?? waiting;
    left = found.left ?? left;
    alarm.set(found.sleep_ms);
    for (const job of found.jobs) run(job);
  });

  const fillIfStarted = () => (state === "started" ? fill() : Promise.resolve());
  const alarm = createAlarm(fillIfStarted);
  /** False once in a while, because only `fill` frees the leases that ran out. */
  const mayFollow = () => state === "started" && left === "more" && app.nowMs() - looked_ms < MAX_SLEEP_MS;

  return {
    fill,
    wake(newcomer) {
      if (newcomer !== undefined && mustWait(newcomer)) return;
      left = "more";
      if (newcomer) order.turns.ask(newcomer.line);
      void fill();
    },
    reserve(use) {
      if (state === "stopped" || left === "more" || mustWait(newcomerOf(use))) return false;
      return takeRoom(use, { ...order, uses, slots });
    },
    release(use) {
      slots.giveBack(1);
      succession.end(use);
      if (left !== "none" || !isLast(use)) void fillIfStarted();
    },
    claimNext: async (tx, ended) =>
      mayFollow() ? claimOne(app, tx, { ...order, succession, ended, free: slots.free() + 1 }) : undefined,
    follow(job) {
      if (state === "stopped") return;
      slots.take();
      succession.follow(job);
      run(job);
    },
    close: (job, room) => void closeUntil(uses, job, room).then(fillIfStarted),
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

/** Whether a job has ended behind which nothing of its lane waits. */
function isLast(use: Use & Pick<Job, "is_last">): boolean {
  return use.is_last ?? false;
}

async function closeUntil(uses: Uses, job: Job, room: Promise<void>): Promise<void> {
  const open = uses.close(job);
  await room;
  open();
}

/** Takes a slot and what else `use` says; false where there is no room. */
function takeRoom(use: Use, { room, uses, slots, kept }: Omit<Filling, "turns" | "running">): boolean {
  if (!hasRoom(use, { uses, room, free: slots.free() })) return false;
  slots.take();
  uses.add(use);
  kept.passed(use);
  return true;
}

interface Succession {
  begin(ended: Job, next: Job): void;
  /** What all other jobs take, also where the transaction of an earlier claim was undone. */
  usesWithout(ended: Job): Uses;
  follow(next: Job): void;
  end(use: Use): void;
}

/**
 * Counts a job that was claimed in place of one that ends in that one's stead, from the claim on and not only from the
 * commit: others that end in the same commit must not be counted without it.
 */
function createSuccession(uses: Uses): Succession {
  const successors = new Map<Use, Job>();
  const followed = new WeakSet<Job>();
  return {
    begin(ended, next) {
      successors.set(ended, next);
      uses.remove(ended);
      uses.add(next);
    },
    usesWithout(ended) {
      const undone = successors.get(ended);
      if (undone !== undefined) {
        successors.delete(ended);
        uses.remove(undone);
        uses.add(ended);
      }
      const others = uses.fork();
      others.remove(ended);
      return others;
    },
    follow: (next: Job) => void followed.add(next),
    end(use) {
      const next = successors.get(use);
      successors.delete(use);
      if (next === undefined) uses.remove(use);
      else if (!followed.has(next)) uses.remove(next);
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

interface Filling extends Pick<PoolOptions, "room" | "running"> {
  uses: Uses;
  turns: Turns;
  kept: KeptMemory;
  slots: ReturnType<typeof createSlots>;
}

interface Found {
  jobs: Job[];
  /** As in `claim`; `full` and `left` are null when the database refused. */
  full: FullLines | null;
  left: Left | null;
  /** Milliseconds until it is worth looking again. */
  sleep_ms: number;
}

/** Claims jobs for the slots that are free once the transaction has its turn; these slots are then theirs. */
async function claimJobs(
  app: App,
  kind: JobKind,
  { room, uses, turns, kept, slots, running }: Filling,
): Promise<Found> {
  let jobs: Job[] = [];
  let taken = 0;
  const steady_now = app.steadyNow();
  try {
    const { next_at, full, all, none } = await app.write(async (tx) => {
      taken = slots.takeFree();
      const free = { limit: taken, free: taken, room, uses, turns, kept };
      const claimed = await claim(tx, kind, { ...clocksOf(app), ...free, steady_now, running });
      // Added at once, not after the commit: a newcomer must not be counted without these jobs.
      jobs = claimed.jobs;
      for (const job of jobs) uses.add(job);
      return claimed;
    });
    const is_full = jobs.length === taken;
    slots.giveBack(taken - jobs.length);
    const due_ms = next_at === null ? MAX_SLEEP_MS : next_at * 1_000 - app.nowMs();
    const sleep_ms = all || is_full ? due_ms : Math.min(due_ms, LOOK_ON_MS);
    const left = is_full || !all ? "more" : none ? "none" : "some";
    return { jobs, full, left, sleep_ms };
  } catch (error) {
    // The database itself logs, once, what is wrong with its disk.
    if (!isStorageFault(error))
      app.log.error({ kind, err: messageOf(error) }, "jobs cannot be claimed; trying again");
    for (const job of jobs) uses.remove(job);
    slots.giveBack(taken);
    return { jobs: [], full: null, left: null, sleep_ms: CLAIM_AGAIN_MS };
  }
}

interface Following {
  room: Room;
  turns: Turns;
  kept: KeptMemory;
  succession: Succession;
  ended: Job;
  free: number;
}

/** Claims one job for the slot that `ended` gives back, together with the memory and target that `ended` had. */
async function claimOne(
  app: App,
  tx: Db,
  { room, turns, kept, succession, ended, free }: Following,
): Promise<Job | undefined> {
  const uses = succession.usesWithout(ended);
  const options = { ...clocksOf(app), limit: 1, free, room, uses, turns, kept };
  const [next] = (await claimPending(tx, ended.kind, options)).jobs;
  if (next) succession.begin(ended, next);
  return next;
}

function clocksOf(app: App) {
  return { now: app.now(), leaseEnd: app.steadyAfter };
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

/** Runs `work` one at a time: all calls that come in the middle of it share one more round after it. */
function joined(work: () => Promise<void>): () => Promise<void> {
  let rounds: Promise<void> | undefined;
  let again = false;
  const repeat = async (): Promise<void> => {
    do {
      again = false;
      await work();
    } while (again);
    // In the same tick as the look at `again`: otherwise a call in between would be lost.
    rounds = undefined;
  };
  return () => {
    again = true;
    return (rounds ??= repeat());
  };
}
