import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { insertRow, prepared } from "../db/prepared.ts";
import type { JobRow } from "../db/schema.ts";
import { holdOn } from "./holds.ts";
import { JOB_RULES, type JobKind, type JobPayloads } from "./kinds.ts";

export interface Job<K extends JobKind = JobKind> {
  id: string;
  kind: K;
  payload: JobPayloads[K];
  /** How often it was begun, this time included. */
  attempts: number;
  /** How often it ended in "not now" or in an error. */
  failures: number;
  share: Share | null;
}

/** Of the slots for a kind, an account gets no more than these at once; with null, no more than it leaves free. */
export interface Share {
  account: string;
  slots: number | null;
}

interface EnqueueOptions {
  run_at?: number;
  /** Jobs of one kind in one lane run one at a time, in the order they were enqueued. */
  lane?: string;
  /** Of all jobs with this key, one at most is waiting or running. */
  dedupe_key?: string;
  /** None: the job counts for nobody. */
  share?: Share | null;
  /** The caller holds a reserved slot and will run the job itself after the commit. */
  claimed?: boolean;
}

const FIRST_BACKOFF_SECONDS = 2;
const MAX_BACKOFF_SECONDS = 3_600;
const MAX_ERROR_CHARS = 1_000;

/** Adds a job in the caller's transaction; the worker hears of it at once. Null, with nothing added, for a known `dedupe_key`. */
export async function enqueue<K extends JobKind>(
  app: App,
  tx: Db,
  work: { kind: K; payload: JobPayloads[K] } & EnqueueOptions,
): Promise<Job<K> | null> {
  const job: Job<K> = {
    id: Bun.randomUUIDv7(),
    kind: work.kind,
    payload: work.payload,
    attempts: work.claimed ? 1 : 0,
    failures: 0,
    share: work.share ?? null,
  };
  const row = rowOf(app, job, work);
  if (!(await insertNew(tx, row))) return null;
  if (!work.claimed) app.worker?.wake(work.kind);
  return job;
}

function rowOf(app: App, job: Job, { claimed = false, lane, dedupe_key, run_at }: EnqueueOptions): JobRow {
  const now = app.now();
  return {
    id: job.id,
    kind: job.kind,
    payload: JSON.stringify(job.payload),
    status: claimed ? "running" : "pending",
    lane: lane ?? null,
    dedupe_key: dedupe_key ?? null,
    run_at: run_at ?? now,
    attempts: job.attempts,
    failures: 0,
    lease_until: claimed ? app.steadyAfter(JOB_RULES[job.kind].lease_seconds) : null,
    last_error: null,
    created: now,
    account: job.share?.account ?? null,
    account_slots: job.share?.slots ?? null,
  };
}

/** False for a known `dedupe_key`. */
async function insertNew(tx: Db, row: JobRow): Promise<boolean> {
  if (row.dedupe_key === null) {
    await insertRow(tx, "jobs", row);
    return true;
  }
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto("jobs")
    .values(row)
    .onConflict((conflict) => conflict.column("dedupe_key").where("dedupe_key", "is not", null).doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows !== 0n;
}

/** What a claim asks for. `running` tells how many jobs of an account run already. */
interface ClaimOptions {
  now: number;
  /** On the clock of `App.steadyNow`. */
  steady_now: number;
  /** `App.steadyAfter`. */
  leaseEnd: (seconds: number) => number;
  limit: number;
  running: (account: string) => number;
  /** Nobody else has anything due than whose jobs run: then nobody is looked for, which takes long behind thousands. */
  alone?: boolean;
}

/**
 * Takes up to `limit` due jobs of a kind: pending ones, and running ones whose lease has run out. `next_at` is the
 * unix second after `now` at which the next one is due; those that wait for their lane do not count. `full` are the
 * accounts of which more is due than they may run at once.
 */
export async function claim<K extends JobKind>(
  tx: Db,
  kind: K,
  options: ClaimOptions,
): Promise<{ jobs: Job<K>[]; next_at: number | null; full: Set<string> }> {
  await freeExpired(tx, { kind, steady_now: options.steady_now });
  const [next] = await nextRun(tx, { kind, now: options.now, limit: 1 });
  return { ...(await claimPending(tx, kind, options)), next_at: next?.run_at ?? null };
}

/** Takes up to `limit` due jobs of a kind that are pending; `alone` as it is to be said the next time. */
export async function claimPending<K extends JobKind>(
  tx: Db,
  kind: K,
  { now, leaseEnd, limit, running, alone = false }: ClaimOptions,
): Promise<{ jobs: Job<K>[]; full: Set<string>; alone: boolean }> {
  const { rows, full, ...found } = await fairlyDue(tx, { kind, now, limit }, { running, alone });
  const lease_until = leaseEnd(JOB_RULES[kind].lease_seconds);
  const jobs: Job<K>[] = [];
  for (const row of rows) {
    await takeLease(tx, { id: row.id, lease_until });
    jobs.push({
      id: row.id,
      kind,
      payload: JSON.parse(row.payload) as JobPayloads[K],
      attempts: row.attempts + 1,
      failures: row.failures,
      share: shareOf(row),
    });
  }
  return { jobs, full, alone: found.alone };
}

type DueRow = Pick<JobRow, "id" | "payload" | "attempts" | "failures" | "account" | "account_slots">;

/**
 * The oldest due jobs, but of no account more than it may run: those of others move up. An account of which nothing
 * runs comes before those with more, whose share may be all the slots there are.
 */
async function fairlyDue(
  tx: Db,
  due: Due,
  { running, alone }: { running: ClaimOptions["running"]; alone: boolean },
): Promise<{ rows: DueRow[]; full: Set<string>; alone: boolean }> {
  const picked: Picked = { rows: [], taken: new Map(), running };
  const busy = alone ? null : await pick(tx, due, picked, 1);
  const others = picked.rows.length;
  const full = busy?.size === 0 ? busy : await pick(tx, due, picked, Number.POSITIVE_INFINITY);
  return { rows: picked.rows, full, alone: others === 0 && picked.rows.length > 0 };
}

interface Picked {
  rows: DueRow[];
  /** Of each account, what runs and what was picked. */
  taken: Map<string, number>;
  running: ClaimOptions["running"];
}

/** Adds to `picked`, and gives the accounts that have more due than `most`, or than their share, lets them run. */
async function pick(tx: Db, due: Due, picked: Picked, most: number): Promise<Set<string>> {
  const { rows } = picked;
  const full = new Set<string>();
  while (rows.length < due.limit) {
    const limit = due.limit - rows.length;
    const not = rows.map(({ id }) => id);
    const found = await (full.size + not.length === 0
      ? dueJobs(tx, due)
      : dueOf(tx, { ...due, limit }, { not_of: [...full], not }).execute());
    const before = full.size;
    for (const row of found) {
      const room = { most, free: due.limit - rows.length };
      if (!addIfRoom(picked, row, room) && row.account !== null) full.add(row.account);
    }
    // Nobody's turn has come in place of another's, or nobody else is there.
    if (full.size === before || found.length < limit) break;
  }
  return full;
}

/** False when the account of the row runs all that it may. */
function addIfRoom(
  { rows, taken, running }: Picked,
  row: DueRow,
  { most, free }: { most: number; free: number },
): boolean {
  const share = shareOf(row);
  if (share !== null) {
    const count = taken.get(share.account) ?? running(share.account);
    if (count >= Math.min(most, share.slots ?? free)) return false;
    taken.set(share.account, count + 1);
  }
  rows.push(row);
  return true;
}

function shareOf({ account, account_slots }: Pick<JobRow, "account" | "account_slots">): Share | null {
  return account === null ? null : { account, slots: account_slots };
}

const UNCLAIMED = { status: "pending", lease_until: null } as const;

interface Due {
  kind: JobKind;
  now: number;
  limit: number;
}

const freeExpired = prepared((db, held: { kind: JobKind; steady_now: number }) =>
  db
    .updateTable("jobs")
    .set(UNCLAIMED)
    .where("kind", "=", held.kind)
    .where("status", "=", "running")
    .where("lease_until", "<=", held.steady_now),
);

const dueJobs = prepared((db, due: Due) => dueOf(db, due, { not_of: [], not: [] }));

function dueOf(db: Db, due: Due, { not_of, not }: { not_of: string[]; not: string[] }) {
  const all = db
    .selectFrom("jobs as job")
    .select(["id", "payload", "attempts", "failures", "account", "account_slots"])
    .where("kind", "=", due.kind)
    .where("status", "=", "pending")
    .where("run_at", "<=", due.now)
    .where((eb) => eb.not(eb.exists(holdOn(db, due))))
    .where((eb) =>
      eb.or([
        eb("lane", "is", null),
        eb.not(
          eb.exists(
            eb
              .selectFrom("jobs as earlier")
              .select("earlier.id")
              .whereRef("earlier.lane", "=", "job.lane")
              .where("earlier.status", "in", ["pending", "running"])
              .whereRef("earlier.id", "<", "job.id"),
          ),
        ),
      ]),
    )
    .orderBy("run_at")
    .orderBy("id")
    .limit(due.limit);
  const others = not.length === 0 ? all : all.where("id", "not in", not);
  if (not_of.length === 0) return others;
  return others.where((eb) => eb.or([eb("account", "is", null), eb("account", "not in", not_of)]));
}

const takeLease = prepared((db, lease: { id: string; lease_until: number }) =>
  db
    .updateTable("jobs")
    .set((eb) => ({
      status: "running",
      attempts: eb("attempts", "+", 1),
      lease_until: lease.lease_until,
    }))
    .where("id", "=", lease.id),
);

const nextRun = prepared((db, due: Due) =>
  db
    .selectFrom("jobs")
    .select("run_at")
    .where("kind", "=", due.kind)
    .where("status", "=", "pending")
    .where("run_at", ">", due.now)
    .orderBy("run_at")
    .limit(1),
);

/**
 * Ends a job in the transaction that records its outcome. Throws when the lease was lost meanwhile, so that
 * the outcome is undone: somebody else has the job now. So do the next three.
 */
export async function finishJob(tx: Db, job: Job): Promise<void> {
  const held = await deleteHeld(tx, { id: job.id, attempts: job.attempts });
  if (held.length === 0) throw new LeaseLostError(job);
}

const deleteHeld = prepared((db, job: { id: string; attempts: number }) =>
  db
    .deleteFrom("jobs")
    .where("id", "=", job.id)
    .where("status", "=", "running")
    .where("attempts", "=", job.attempts)
    .returning("id"),
);

/** Puts a job back for `run_at` because its handler said "not now": `error` says why. */
export async function postponeJob(tx: Db, job: Job, retry: { run_at: number; error: string }): Promise<void> {
  await updateHeld(tx, job, {
    ...UNCLAIMED,
    failures: job.failures + 1,
    run_at: retry.run_at,
    last_error: retry.error.slice(0, MAX_ERROR_CHARS),
  });
}

/** Gives a job back untouched, as when the server stops in the middle of it. */
export async function returnJob(tx: Db, job: Job): Promise<void> {
  await updateHeld(tx, job, { ...UNCLAIMED, attempts: job.attempts - 1 });
}

/** Ends a job that has more to do at `run_at`: another takes its place, which starts with nothing counted. */
export async function deferJob(tx: Db, job: Job, run_at: number): Promise<void> {
  const anew = { id: Bun.randomUUIDv7(), attempts: 0, failures: 0, last_error: null };
  await updateHeld(tx, job, { ...UNCLAIMED, ...anew, run_at });
}

/** Keeps a job that cannot be finished, for a person to look at; it stands in nobody's way any more. */
export async function buryJob(tx: Db, job: Job, error: string): Promise<void> {
  await updateHeld(tx, job, {
    status: "dead",
    lease_until: null,
    lane: null,
    dedupe_key: null,
    last_error: error.slice(0, MAX_ERROR_CHARS),
  });
}

async function updateHeld(tx: Db, job: Job, change: Partial<JobRow>): Promise<void> {
  const { numUpdatedRows } = await tx
    .updateTable("jobs")
    .set(change)
    .where("id", "=", job.id)
    .where("status", "=", "running")
    .where("attempts", "=", job.attempts)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) throw new LeaseLostError(job);
}

/** One process owns a data folder, so at its start every lease belongs to a dead process. */
export async function voidLeases(tx: Db): Promise<void> {
  await tx.updateTable("jobs").set(UNCLAIMED).where("status", "=", "running").execute();
}

/** Seconds to wait after the n-th failure: doubling, capped at an hour. */
export function backoffSeconds(failures: number): number {
  return Math.min(FIRST_BACKOFF_SECONDS * 2 ** Math.max(0, failures - 1), MAX_BACKOFF_SECONDS);
}

export async function isLaneBusy(tx: Db, lane: string): Promise<boolean> {
  return (await jobsInLane(tx, { lane })).length > 0;
}

const jobsInLane = prepared((db, key: { lane: string }) =>
  db
    .selectFrom("jobs")
    .select("id")
    .where("lane", "=", key.lane)
    .where("status", "in", ["pending", "running"]),
);

export class LeaseLostError extends Error {
  constructor(job: Job) {
    super(`The lease of ${job.kind} job ${job.id} ran out before it ended`);
    this.name = "LeaseLostError";
  }
}
