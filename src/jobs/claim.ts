import type { Db } from "../db/database.ts";
import { dueOfEach, type DueRow, nextRun } from "../db/due-jobs.ts";
import { prepared } from "../db/prepared.ts";
import { JOB_RULES, type JobKind, type JobPayloads } from "./kinds.ts";
import { storedJson } from "../lib/stored-json.ts";
import { DAMAGED_PAYLOAD, type Job, UNCLAIMED } from "./queue.ts";
import { largestJob, type Room, type Use, type Uses, whyNot } from "./shares.ts";

/** What a claim asks for. */
interface ClaimOptions {
  now: number;
  /** On the clock of `App.steadyNow`. */
  steady_now: number;
  /** `App.steadyAfter`. */
  leaseEnd: (seconds: number) => number;
  limit: number;
  /** Slots that are free; `limit` of them at the most are taken. */
  free: number;
  room: Room;
  /** What runs already. */
  uses: Uses;
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
  const [next] = await nextRun(tx, { kind, now: options.now });
  return { ...(await claimPending(tx, kind, options)), next_at: next?.run_at ?? null };
}

/** Takes up to `limit` due jobs of a kind that are pending. */
export async function claimPending<K extends JobKind>(
  tx: Db,
  kind: K,
  { now, leaseEnd, limit, free, room, uses: running }: ClaimOptions,
): Promise<{ jobs: Job<K>[]; full: Set<string> }> {
  const uses = running.fork();
  const lease_until = leaseEnd(JOB_RULES[kind].lease_seconds);
  const jobs: Job<K>[] = [];
  for (;;) {
    const left = { free: free - jobs.length, limit: limit - jobs.length };
    const weight = Math.floor(largestJob(uses, room));
    const full_targets = JSON.stringify(uses.targetsWith(room.target_slots));
    const due = await dueOfEach(tx, { kind, now, limit: left.limit, weight, full_targets });
    const { chosen, full, hidden } = choose(due, { ...left, room, uses });
    for (const row of chosen) {
      await takeLease(tx, { id: row.id, lease_until });
      jobs.push(jobOf(kind, row));
    }
    // Behind those that were passed over there may be others of their account that have room.
    if (chosen.size === 0 || jobs.length === limit || !hidden) return { jobs, full };
  }
}

function jobOf<K extends JobKind>(kind: K, row: DueRow): Job<K> {
  return {
    id: row.id,
    kind,
    payload: storedJson(row.payload, DAMAGED_PAYLOAD as unknown as JobPayloads[K]),
    attempts: row.attempts + 1,
    failures: row.failures,
    ...useOf(row),
  };
}

function useOf({ account, account_slots, weight, target }: DueRow): Use {
  return { share: account === null ? null : { account, slots: account_slots }, weight, target };
}

/**
 * Returns the due jobs that may run, which then count among `uses`. An account of which nothing runs comes before those
 * with more, which then share what is left, in the order in which their jobs are due. `full` are the accounts that
 * have more due than they may run; `hidden` says that a target or the memory was what a job lacked.
 */
function choose(
  due: DueRow[],
  { limit, free, room, uses }: { limit: number; free: number; room: Room; uses: Uses },
): { chosen: Set<DueRow>; full: Set<string>; hidden: boolean } {
  const chosen = new Set<DueRow>();
  let full = new Set<string>();
  let hidden = false;
  for (const most of [1, Number.POSITIVE_INFINITY]) {
    full = new Set();
    hidden = false;
    for (const row of due) {
      if (chosen.has(row)) continue;
      if (chosen.size === limit) break;
      const use = useOf(row);
      const reason = whyNot(use, { uses, room, free: free - chosen.size, most });
      if (reason === null) {
        uses.add(use);
        chosen.add(row);
      } else if (reason === "account") full.add(row.account ?? "");
      else hidden = true;
    }
  }
  return { chosen, full, hidden };
}

const freeExpired = prepared((db, held: { kind: JobKind; steady_now: number }) =>
  db
    .updateTable("jobs")
    .set(UNCLAIMED)
    .where("kind", "=", held.kind)
    .where("status", "=", "running")
    .where("lease_until", "<=", held.steady_now),
);

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
