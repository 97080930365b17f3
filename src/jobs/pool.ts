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

/** How long to wait before claiming again after the database refused. */
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
   * Must be called when a job has been enqueued. Where older work of its line waits for a job to end, nothing is
   * claimed before that end.
   */
  wake(newcomer?: Newcomer): void;
  /**
   * Reserves a free slot, and the memory and target in `use`. Returns false when there is none, or others come first.
   */
  reserve(use: Use): boolean;
  /** Releases a slot with the memory and target in `use`, reserved earlier or used by a job that ended. */
  release(use: Use): void;
  /**
   * Claims a waiting job in the transaction that ends another, which saves a commit. The caller has to call `follow`
   * with it directly after the commit.
   */
  claimNext(tx: Db, ended: Job): Promise<Job | undefined>;
  /**
   * Starts the claimed job in the slot that the ended job is about to release. In a stopped pool it stays claimed until
   * the next start frees it.
   */
  follow(job: Job): void;
  /** Starts no more jobs of the job's account at its target until `room` resolves. */
  close(job: Job, room: Promise<void>): void;
  /** Starts calling `fill` automatically: when a slot becomes free, and when a job becomes due. */
  start(): void;
  /** Stops claiming jobs. */
  stop(): Promise<void>;
}

/**
 * What a claim left in the queue. "more": jobs may be due that must get a slot first; also from the moment a job is
 * enqueued, so that no caller takes a slot before it. "some": jobs are due for which there is no room. "none": a free
 * slot would change nothing. An alarm covers jobs that become due later.
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
  /** Lines whose older work waits: a new job that needs as much or more must wait its turn. */
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
  /** False once in a while, because only `fill` frees expired leases. */
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

/** Returns whether a job has ended with nothing waiting behind it in its lane. */
function isLast(use: Use & Pick<Job, "is_last">): boolean {
  return use.is_last ?? false;
}

async function closeUntil(uses: Uses, job: Job, room: Promise<void>): Promise<void> {
  const open = uses.close(job);
  await room;
  open();
}

/** Takes a slot with the memory and target in `use`. Returns false where there is no room. */
function takeRoom(use: Use, { room, uses, slots, kept }: Omit<Filling, "turns" | "running">): boolean {
  if (!hasRoom(use, { uses, room, free: slots.free() })) return false;
  slots.take();
  uses.add(use);
  kept.passed(use);
  return true;
}

interface Succession {
  begin(ended: Job, next: Job): void;
  /** What all other jobs use, also when the transaction of an earlier claim was undone. */
  usesWithout(ended: Job): Uses;
  follow(next: Job): void;
  end(use: Use): void;
}

/**
 * Counts a job that was claimed in place of one that is ending instead of that one, from the claim and not only from
 * the commit: other jobs that end in the same commit must see it.
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

/** Counts the slots in use: by jobs, by callers that reserved one, and by a claim whose commit is pending. */
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

/** Claims jobs for the slots that are free when its transaction begins; from then on these slots are taken. */
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
      // Added at once, not after the commit: a new job must not be admitted without counting these.
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
    // The database logs faults of its disk itself, once.
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

/** Calls `ring` once after the time last set, `MAX_SLEEP_MS` at most. The timer does not keep the process alive. */
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

/** Returns a function that runs `work` once at a time: calls during a run share one more run after it. */
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
