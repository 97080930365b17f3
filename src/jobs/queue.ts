import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { JobRow } from "../db/schema.ts";

/** Every kind of work and what it carries. */
export interface JobPayloads {
  route_message: { message_id: string };
  send_mail: { outgoing_id: string };
}

export type JobKind = keyof JobPayloads;

export interface Job<K extends JobKind = JobKind> {
  id: string;
  kind: K;
  payload: JobPayloads[K];
  attempts: number;
  failures: number;
}

interface EnqueueOptions {
  run_at?: number;
  lane?: string;
  dedupe_key?: string;
  /** The caller holds a reserved slot and will run the job itself after the commit. */
  claimed?: boolean;
}

export const JOB_RULES: Record<JobKind, { lease_seconds: number; max_attempts: number }> = {
  route_message: { lease_seconds: 900, max_attempts: 8 },
  send_mail: { lease_seconds: 300, max_attempts: 100 },
};

const FIRST_BACKOFF_SECONDS = 2;
const MAX_BACKOFF_SECONDS = 3_600;

/** Adds a job in the caller's transaction; the worker hears of it at once. A known `dedupe_key` adds nothing. */
export async function enqueue<K extends JobKind>(
  app: App,
  tx: Db,
  work: { kind: K; payload: JobPayloads[K] } & EnqueueOptions,
): Promise<Job<K>> {
  const now = app.now();
  const job: Job<K> = {
    id: Bun.randomUUIDv7(),
    kind: work.kind,
    payload: work.payload,
    attempts: work.claimed ? 1 : 0,
    failures: 0,
  };
  await tx
    .insertInto("jobs")
    .values({
      id: job.id,
      kind: job.kind,
      payload: JSON.stringify(job.payload),
      status: work.claimed ? "running" : "pending",
      lane: work.lane ?? null,
      dedupe_key: work.dedupe_key ?? null,
      run_at: work.run_at ?? now,
      attempts: job.attempts,
      failures: 0,
      lease_until: work.claimed ? now + JOB_RULES[work.kind].lease_seconds : null,
      last_error: null,
      created: now,
    })
    .onConflict((conflict) => conflict.column("dedupe_key").doNothing())
    .execute();
  if (!work.claimed) app.worker?.wake(work.kind);
  return job;
}

/** Takes up to `limit` due jobs of a kind: pending ones, and running ones whose lease has run out. */
export async function claim<K extends JobKind>(
  tx: Db,
  kind: K,
  options: { now: number; limit: number },
): Promise<Job<K>[]> {
  const rows = await dueJobs(tx, kind, options);
  if (rows.length === 0) return [];
  await tx
    .updateTable("jobs")
    .set((eb) => ({
      status: "running",
      attempts: eb("attempts", "+", 1),
      lease_until: options.now + JOB_RULES[kind].lease_seconds,
    }))
    .where(
      "id",
      "in",
      rows.map((row) => row.id),
    )
    .execute();
  return rows.map((row) => ({
    id: row.id,
    kind,
    payload: JSON.parse(row.payload) as JobPayloads[K],
    attempts: row.attempts + 1,
    failures: row.failures,
  }));
}

function dueJobs(tx: Db, kind: JobKind, options: { now: number; limit: number }) {
  return tx
    .selectFrom("jobs as job")
    .select(["id", "payload", "attempts", "failures"])
    .where("kind", "=", kind)
    .where((eb) =>
      eb.or([
        eb.and([eb("status", "=", "pending"), eb("run_at", "<=", options.now)]),
        eb.and([eb("status", "=", "running"), eb("lease_until", "<", options.now)]),
      ]),
    )
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
    .limit(options.limit)
    .execute();
}

/**
 * Ends a job in the transaction that records its outcome. Throws when the lease was lost meanwhile, so that
 * the outcome is undone: somebody else has the job now.
 */
export async function finishJob(tx: Db, job: Job): Promise<void> {
  const { numDeletedRows } = await tx
    .deleteFrom("jobs")
    .where("id", "=", job.id)
    .where("status", "=", "running")
    .where("attempts", "=", job.attempts)
    .executeTakeFirst();
  if (numDeletedRows === 0n) throw new LeaseLostError(job);
}

/** Puts a job back for `run_at` because its handler said "not now": `error` says why. */
export async function postponeJob(tx: Db, job: Job, retry: { run_at: number; error: string }): Promise<void> {
  await tx
    .updateTable("jobs")
    .set({
      status: "pending",
      failures: job.failures + 1,
      lease_until: null,
      run_at: retry.run_at,
      last_error: retry.error.slice(0, 1_000),
    })
    .where("id", "=", job.id)
    .where("attempts", "=", job.attempts)
    .execute();
}

/** Gives a job back untouched, as when the server stops in the middle of it. */
export async function returnJob(tx: Db, job: Job): Promise<void> {
  await tx
    .updateTable("jobs")
    .set({ status: "pending", attempts: job.attempts - 1, lease_until: null })
    .where("id", "=", job.id)
    .where("attempts", "=", job.attempts)
    .execute();
}

/** Keeps a job that cannot be finished, for a person to look at. */
export async function buryJob(tx: Db, job: Job, error: string): Promise<void> {
  await tx
    .updateTable("jobs")
    .set({ status: "dead", lease_until: null, lane: null, last_error: error.slice(0, 1_000) })
    .where("id", "=", job.id)
    .execute();
}

/** One process owns a data folder, so at its start every lease belongs to a dead process. */
export async function voidLeases(tx: Db): Promise<void> {
  await tx
    .updateTable("jobs")
    .set({ status: "pending", lease_until: null })
    .where("status", "=", "running")
    .execute();
}

/** The unix second of the next pending job of a kind, or null. */
export async function nextRunAt(db: Db, kind: JobKind): Promise<number | null> {
  const row = await db
    .selectFrom("jobs")
    .select("run_at")
    .where("kind", "=", kind)
    .where("status", "=", "pending")
    .orderBy("run_at")
    .limit(1)
    .executeTakeFirst();
  return row?.run_at ?? null;
}

/** Seconds to wait after the n-th failed attempt: doubling, capped at an hour. */
export function backoffSeconds(attempts: number): number {
  return Math.min(FIRST_BACKOFF_SECONDS * 2 ** Math.max(0, attempts - 1), MAX_BACKOFF_SECONDS);
}

export async function isLaneBusy(tx: Db, lane: string): Promise<boolean> {
  const earlier: Pick<JobRow, "id"> | undefined = await tx
    .selectFrom("jobs")
    .select("id")
    .where("lane", "=", lane)
    .where("status", "in", ["pending", "running"])
    .limit(1)
    .executeTakeFirst();
  return earlier !== undefined;
}

export class LeaseLostError extends Error {
  constructor(job: Job) {
    super(`The lease of ${job.kind} job ${job.id} ran out before it ended`);
    this.name = "LeaseLostError";
  }
}
