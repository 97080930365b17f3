import type { App } from "../app.ts";
import { type Db, unlessCommitted } from "../db/database.ts";
import { jobInLane } from "../db/due-jobs.ts";
import { insertRow, prepared } from "../db/prepared.ts";
import type { JobRow } from "../db/schema.ts";
import { storedJson } from "../lib/stored-json.ts";
import { JOB_RULES, type JobKind, type JobPayloads } from "./kinds.ts";
import type { Use } from "./shares.ts";
import { HOUR_SECONDS } from "../lib/durations.ts";

export interface Job<K extends JobKind = JobKind> extends Use {
  id: string;
  kind: K;
  payload: JobPayloads[K];
  /** How often the job was started, this time included. */
  attempts: number;
  /** How often the job was postponed or ended in an error. */
  failures: number;
  /** Data that the enqueuing code passes to the handler if the job starts at once; it is not stored. */
  fresh?: object;
  /** Set when the job ends: nothing of its lane waits behind it. */
  is_last?: boolean;
}

/** The payload of a job whose stored one is damaged: that job is set aside, so that the others continue. */
export const DAMAGED_PAYLOAD = Object.freeze({});

/** Returns the payload of a job, or `DAMAGED_PAYLOAD`. */
export function payloadOf({ kind, payload }: Pick<JobRow, "kind" | "payload">): object {
  const stored = storedJson<Record<string, unknown> | null>(payload, null);
  if (typeof stored !== "object" || stored === null) return DAMAGED_PAYLOAD;
  const names = (JOB_RULES as Record<string, { names: string | null }>)[kind]?.names ?? null;
  return names === null || typeof stored[names] === "string" ? stored : DAMAGED_PAYLOAD;
}

/** The account that a job is for, and how many jobs of its kind may run for it at once; null for a fair number. */
export interface Share {
  account: string;
  slots: number | null;
  /**
   * True when somebody other than the owner or a listed sender caused the job: it waits behind the jobs that these
   * cause.
   */
  strangers?: boolean;
}

const STRANGERS = "/strangers";

/**
 * Returns the line that a job waits in, stored as `account` of its row. Jobs that strangers cause have a line of their
 * own, so that they never hide the others.
 */
function lineOf({ account, strangers = false }: Share): string {
  return strangers ? account + STRANGERS : account;
}

const MEMBER = ":";

/** Returns the account name for jobs that strangers cause, where strangers to all accounts count together as one. */
export function strangersTo(account: string): string {
  return memberOf("strangers", account);
}

/**
 * Returns the name of an account that belongs to a group: the group counts as one account beside the others, and its
 * members share what it gets.
 */
export function memberOf(group: string, name: string): string {
  return group + MEMBER + name;
}

/** Returns the group that an account is a member of; null for an account that stands for itself. */
export function groupOf(account: string): string | null {
  const at = account.indexOf(MEMBER);
  return at < 0 ? null : account.slice(0, at);
}

/** Returns the name of a member within its group, or of an account without a group. */
export function nameOf(account: string): string {
  return account.slice(account.indexOf(MEMBER) + 1);
}

/** What a pool needs to know about a new job to decide whether to claim. */
export interface Newcomer {
  /** See `lineOf`; empty for a job that counts for nobody. */
  line: string;
  weight: number;
}

export function newcomerOf({ share, weight }: Pick<Use, "share" | "weight">): Newcomer {
  return { line: share === null ? "" : lineOf(share), weight };
}

/** Returns both lines of an account: its own and that of strangers. */
export function linesOf(account: string): string[] {
  return [account, account + STRANGERS];
}

/** Returns the share of the jobs that wait in a line. */
export function shareOf(line: string, slots: number | null): Share {
  return line.endsWith(STRANGERS)
    ? { account: line.slice(0, -STRANGERS.length), slots, strangers: true }
    : { account: line, slots };
}

/** Returns the slot, memory and target that a stored job uses. */
export function useOf({
  account,
  account_slots,
  weight,
  target,
}: Pick<JobRow, "account" | "account_slots" | "weight" | "target">): Use {
  return { share: account === null ? null : shareOf(account, account_slots), weight, target };
}

interface EnqueueOptions {
  run_at?: number;
  /** Jobs of one kind in one lane run one at a time, in the order they were enqueued. */
  lane?: string;
  /** At most one job with this key waits or runs. */
  dedupe_key?: string;
  /** Without a share, the job counts for no account. */
  share?: Share | null;
  weight?: number;
  target?: string | null;
  /** True when the caller has reserved a slot and will run the job itself after the commit. */
  claimed?: boolean;
}

const FIRST_BACKOFF_SECONDS = 2;
const MAX_BACKOFF_SECONDS = HOUR_SECONDS;
const MAX_ERROR_CHARS = 1_000;

/**
 * Adds a job in the caller's transaction; the worker starts it after the commit. Returns null, with nothing added, when
 * a job has this `dedupe_key`.
 */
export async function enqueue<K extends JobKind>(
  app: App,
  tx: Db,
  work: { kind: K; payload: JobPayloads[K] } & EnqueueOptions,
): Promise<Job<K> | null> {
  const job: Job<K> = {
    id: app.newId(),
    kind: work.kind,
    payload: work.payload,
    attempts: work.claimed ? 1 : 0,
    failures: 0,
    share: work.share ?? null,
    weight: work.weight ?? 0,
    target: work.target ?? null,
  };
  const row = rowOf(app, job, work);
  if (!(await insertNew(tx, row))) return null;
  if (!work.claimed) app.worker?.wake(work.kind, newcomerOf(job));
  return job;
}

function rowOf(app: App, job: Job, { claimed = false, lane, dedupe_key, run_at }: EnqueueOptions): JobRow {
  const now = app.now();
  const time = run_at ?? now;
  return {
    id: job.id,
    kind: job.kind,
    payload: JSON.stringify(job.payload),
    status: claimed ? "running" : "pending",
    lane: lane ?? null,
    behind: 0,
    later: time > now ? 1 : 0,
    dedupe_key: dedupe_key ?? null,
    run_at: time,
    attempts: job.attempts,
    failures: 0,
    lease_until: claimed ? app.steadyAfter(JOB_RULES[job.kind].lease_seconds) : null,
    last_error: null,
    created: now,
    account: job.share && lineOf(job.share),
    account_slots: job.share?.slots ?? null,
    weight: job.weight,
    target: job.target,
  };
}

/** Inserts a job; returns false when another has its `dedupe_key`. */
async function insertNew(tx: Db, row: JobRow): Promise<boolean> {
  const { dedupe_key } = row;
  if (dedupe_key !== null && (await jobWithKey(tx, { dedupe_key })).length > 0) return false;
  await insertRow(tx, "jobs", row);
  return true;
}

/**
 * Checks for the key before the insert, which is enough because nobody else writes meanwhile. Both are compiled once,
 * unlike an insert with a condition.
 */
const jobWithKey = prepared((db, key: { dedupe_key: string }) =>
  db.selectFrom("jobs").select("id").where("dedupe_key", "=", key.dedupe_key),
);

export const UNCLAIMED = { status: "pending", lease_until: null } as const;

/**
 * Ends a job in the transaction that records its outcome. Throws when its lease was lost to another worker, so that the
 * outcome is undone; so do `postponeJob`, `returnJob`, `deferJob` and `buryJob`.
 */
export async function finishJob(tx: Db, job: Job): Promise<void> {
  const held = await deleteHeld(tx, { id: job.id, attempts: job.attempts });
  if (held.length === 0) throw new LeaseLostError(job);
  job.is_last = held[0]?.followed === 0;
  // If the end is undone, the job is not the last of its lane any more.
  unlessCommitted(tx, () => delete job.is_last);
}

const deleteHeld = prepared((db, job: { id: string; attempts: number }) =>
  db
    .deleteFrom("jobs")
    .where("id", "=", job.id)
    .where("status", "=", "running")
    .where("attempts", "=", job.attempts)
    .returning((eb) => [
      "id",
      eb
        .exists(
          eb
            .selectFrom("jobs as next")
            .select("next.id")
            .whereRef("next.lane", "=", "jobs.lane")
            .whereRef("next.id", "!=", "jobs.id"),
        )
        .$castTo<number>()
        .as("followed"),
    ]),
);

/** Replaces the payload of a job, whatever state the job is in. */
export const rewriteJob = prepared((db, { id, payload }: { id: string; payload: string }) =>
  db.updateTable("jobs").set({ payload }).where("id", "=", id),
);

/** Returns a job to the queue until `run_at`, as a failure that `error` describes. */
export async function postponeJob(
  tx: Db,
  job: Job,
  { error, ...later }: { run_at: number; error: string; dedupe_key?: string },
): Promise<void> {
  await updateHeld(tx, job, {
    ...UNCLAIMED,
    failures: job.failures + 1,
    ...later,
    last_error: error.slice(0, MAX_ERROR_CHARS),
  });
}

/**
 * Returns a job to the queue without counting the attempt, as when the server stops during it. It starts again at
 * `run_at` if given; `error` says why.
 */
export async function returnJob(
  tx: Db,
  job: Job,
  {
    error,
    ...later
  }: { run_at?: number; error?: string; dedupe_key?: string | null; lane?: string | null } = {},
): Promise<void> {
  const why = error === undefined ? {} : { last_error: error.slice(0, MAX_ERROR_CHARS) };
  await updateHeld(tx, job, { ...UNCLAIMED, attempts: job.attempts - 1, ...later, ...why });
}

/**
 * Ends a job that has more to do at `run_at`: a new job takes its place, with attempts and failures at zero. `why`: what
 * it waits for, where that is worth being shown.
 */
export async function deferJob(tx: Db, job: Job, run_at: number, why: string | null = null): Promise<void> {
  const anew = { id: Bun.randomUUIDv7(), attempts: 0, failures: 0, last_error: why };
  await updateHeld(tx, job, { ...UNCLAIMED, ...anew, run_at });
}

/** The columns of a dead job: it no longer holds up others. */
export const DEAD = { status: "dead", lease_until: null, lane: null, dedupe_key: null } as const;

/** Marks a job as dead, for the operator to look at. It is kept for so long from now on, however old it is. */
export async function buryJob({ now }: Pick<App, "now">, tx: Db, job: Job, error: string): Promise<void> {
  await updateHeld(tx, job, { ...DEAD, run_at: now(), last_error: error.slice(0, MAX_ERROR_CHARS) });
}

/** Writes another error to a job that `buryJob` has marked as dead. */
export async function noteOnDead(tx: Db, { id }: Job, error: string): Promise<void> {
  const last_error = error.slice(0, MAX_ERROR_CHARS);
  await tx.updateTable("jobs").set({ last_error }).where("id", "=", id).execute();
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

/** Takes its `dedupe_key` from a claimed job, so that another can be added for what comes while it runs. */
export async function leaveKey(tx: Db, job: Job): Promise<void> {
  await updateHeld(tx, job, { dedupe_key: null });
}

/** Frees all leases: only one process uses a data folder, so at its start every lease belongs to a dead process. */
export async function voidLeases(tx: Db): Promise<void> {
  await tx.updateTable("jobs").set(UNCLAIMED).where("status", "=", "running").execute();
}

/** Returns the seconds to wait after the n-th failure: doubled each time, an hour at most. */
export function backoffSeconds(failures: number): number {
  return Math.min(FIRST_BACKOFF_SECONDS * 2 ** Math.max(0, failures - 1), MAX_BACKOFF_SECONDS);
}

export async function isLaneBusy(tx: Db, lane: string): Promise<boolean> {
  return (await jobInLane(tx, { lane })).length > 0;
}

export class LeaseLostError extends Error {
  constructor(job: Job) {
    super(`The lease of ${job.kind} job ${job.id} ran out before it ended`);
    this.name = "LeaseLostError";
  }
}
