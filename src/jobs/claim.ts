import type { Db } from "../db/database.ts";
import { dueOfLines, type DueRow } from "../db/due-jobs.ts";
import { jsonTexts } from "../db/json.ts";
import { prepared } from "../db/prepared.ts";
import type { KeptMemory } from "./kept-memory.ts";
import { JOB_RULES, type JobKind, type JobPayloads } from "./kinds.ts";
import { type Job, payloadOf, UNCLAIMED, useOf } from "./queue.ts";
import { fullTargets, isOfStrangers, largestJob, type Room, type Use, type Uses, whyNot } from "./shares.ts";
import type { Turns } from "./turns.ts";

/** How many due jobs a claim looks at in all, whatever number could run: hardly any account may run as many. */
const LOOKED_AT_ONCE = 64;
/** How many due jobs a claim looks at of each line at least (a line is the due jobs of one account). */
const LEAST_OF_LINE = 4;

/** The request of a claim. */
interface ClaimOptions {
  now: number;
  /** `App.steadyAfter`. */
  leaseEnd: (seconds: number) => number;
  limit: number;
  /** Slots that are free; `limit` of them at the most are taken. */
  free: number;
  room: Room;
  /** What runs already. */
  uses: Uses;
  turns: Turns;
  kept: KeptMemory;
}

interface Claimed<K extends JobKind> {
  jobs: Job<K>[];
  full: FullLines;
  /** True if nothing else could have been taken; if false, another look is worth it wherever a slot is left. */
  all: boolean;
  /** True if no job was ready that had to wait for a slot, for memory, or for its turn. */
  none: boolean;
  next_at: number | null;
}

/** Which expired leases a claim ends. */
interface Lapse {
  /**
   * The time by `App.steadyNow`, read before the claim waited for its transaction: a lease that was taken in that
   * transaction is then not over, however long the wait was.
   */
  steady_now: number;
  /**
   * The ids of the jobs that this process runs: if the lease of one is over, the process only stood still, or cannot
   * write.
   */
  running: () => Set<string>;
}

/** By line (account), the weight from which on a job of the line waits until something ends. */
export type FullLines = Map<string, number>;

/**
 * Takes up to `limit` due jobs of a kind: pending ones, and those whose lease is over and that nobody runs. `next_at`
 * is the unix second at which the next job becomes due that is not due yet; one that waits for its lane may count.
 * `full` are the lines of accounts of which more is due than they may run at once, each with the weight from which on a
 * job has no room.
 */
export async function claim<K extends JobKind>(
  tx: Db,
  kind: K,
  options: ClaimOptions & Lapse,
): Promise<Claimed<K>> {
  await freeExpired(tx, kind, options);
  return claimPending(tx, kind, options);
}

/**
 * Takes up to `limit` due jobs of a kind that are pending. If none of the jobs whose turn it is can begin, it looks no
 * further, because the cost of a claim must not depend on how many jobs wait.
 */
export async function claimPending<K extends JobKind>(
  tx: Db,
  kind: K,
  { now, leaseEnd, limit, free, room, uses: running, turns, kept }: ClaimOptions,
): Promise<Claimed<K>> {
  const uses = running.fork();
  const lease_until = leaseEnd(JOB_RULES[kind].lease_seconds);
  const claimed: Claimed<K> = { jobs: [], full: new Map(), all: false, none: false, next_at: null };
  const { jobs } = claimed;
  const take = async (row: DueRow): Promise<void> => {
    await takeLease(tx, { id: row.id, lease_until });
    jobs.push(jobOf(kind, row));
  };
  for (let round = 0; jobs.length < limit; round += 1) {
    const left = { free: free - jobs.length, limit: limit - jobs.length };
    const look = await turns.look(tx, { kind, now });
    if (look.lines.length === 0)
      return { ...claimed, full: new Map(), all: true, none: true, next_at: look.next_at };
    const first = round > 0 ? null : await kept.next(tx, { kind, now, uses, room, free: left.free });
    if (first !== null) {
      uses.add(useOf(first));
      await take(first);
      Object.assign(claimed, { all: look.is_all, next_at: look.next_at });
      continue;
    }
    const each = Math.min(left.limit, jobsOfEach(look.lines.length));
    const due = await dueOfLines(tx, {
      kind,
      lines: JSON.stringify(look.lines),
      now,
      limit: each,
      weight: Math.floor(largestJob(uses, room)),
      full_targets: JSON.stringify(fullTargets(uses, room)),
    });
    const { chosen, full, hidden } = choose(turns.inOrder(look, due), {
      ...left,
      room,
      uses,
      all: look.is_all,
    });
    for (const row of chosen) {
      await take(row);
      kept.passed(row);
    }
    turns.took(chosen);
    turns.settle(look, new Set([...chosen].map(lineOfRow)), jobs.length < limit);
    Object.assign(claimed, { full, all: look.is_all, next_at: look.next_at });
    // Behind the jobs that were passed over, or taken, there may be others of their account that have room.
    const more = !look.is_all || hidden || chosen.size >= each;
    if (chosen.size === 0 || !more) break;
  }
  return claimed;
}

function jobsOfEach(lines: number): number {
  return Math.max(LEAST_OF_LINE, Math.ceil(LOOKED_AT_ONCE / Math.max(1, lines)));
}

function lineOfRow({ account }: DueRow): string {
  return account ?? "";
}

function jobOf<K extends JobKind>(kind: K, row: DueRow): Job<K> {
  return {
    id: row.id,
    kind,
    payload: payloadOf({ kind, payload: row.payload }) as JobPayloads[K],
    attempts: row.attempts + 1,
    failures: row.failures,
    ...useOf(row),
  };
}

/**
 * Returns the due jobs that may run, and adds them to `uses`. Accounts of which nothing runs come first. The others
 * share what is left, in the order of `due`; where `due` is not `all` that is due, they share it only if the first had
 * nothing to begin. While a job of its household waits for a slot or for memory, an account begins nothing of
 * strangers. `full` is as in `claim`; `hidden` says that a target or the memory was what a job lacked.
 */
function choose(
  due: DueRow[],
  { limit, free, room, uses, all }: { limit: number; free: number; room: Room; uses: Uses; all: boolean },
): { chosen: Set<DueRow>; full: FullLines; hidden: boolean } {
  const chosen = new Set<DueRow>();
  let full: FullLines = new Map();
  let hidden = false;
  const candidates = householdsFirst(due.map((row) => ({ row, use: useOf(row) })));
  for (const most of [1, Number.POSITIVE_INFINITY]) {
    if (!all && chosen.size > 0) break;
    full = new Map();
    hidden = false;
    const households = new Set<string>();
    for (const { row, use } of candidates) {
      if (chosen.has(row)) continue;
      if (chosen.size === limit) break;
      const reason = lackOf(use, households, { uses, room, free: free - chosen.size, most });
      if (reason === null) {
        uses.add(use);
        chosen.add(row);
        continue;
      }
      if (reason !== "account") hidden = true;
      if (reason !== "target") fillFrom(full, lineOfRow(row), reason === "account" ? 0 : use.weight);
    }
  }
  return { chosen, full, hidden };
}

function fillFrom(full: FullLines, line: string, weight: number): void {
  full.set(line, Math.min(full.get(line) ?? weight, weight));
}

interface Candidate {
  row: DueRow;
  use: Use;
}

/** Sorts the jobs of each account, household first, among the places that the account has in the order. */
function householdsFirst(candidates: Candidate[]): Candidate[] {
  if (!candidates.some(({ use }) => isOfStrangers(use))) return candidates;
  const accountOf = ({ use }: Candidate): string | undefined => use.share?.account;
  const sorted = new Map<string | undefined, Iterator<Candidate>>();
  for (const [account, all] of Map.groupBy(candidates, accountOf)) {
    const { household = [], strangers = [] } = Object.groupBy(all, ({ use }) =>
      isOfStrangers(use) ? "strangers" : "household",
    );
    sorted.set(account, [...household, ...strangers].values());
  }
  return candidates.map((one) => sorted.get(accountOf(one))?.next().value ?? one);
}

/**
 * As `whyNot`, but a job of strangers also waits if one of the account's household was passed over; `households` has
 * these accounts.
 */
function lackOf(
  use: Use,
  households: Set<string>,
  state: Parameters<typeof whyNot>[1],
): ReturnType<typeof whyNot> {
  const account = use.share?.account ?? "";
  if (isOfStrangers(use) && households.has(account)) return "account";
  const reason = whyNot(use, state);
  if (reason !== null && reason !== "target" && !isOfStrangers(use)) households.add(account);
  return reason;
}

async function freeExpired(tx: Db, kind: JobKind, { steady_now, running }: Lapse): Promise<void> {
  const expired = await expiredLeases(tx, { kind, steady_now });
  if (expired.length === 0) return;
  const alive = running();
  const lost = expired.map(({ id }) => id).filter((id) => !alive.has(id));
  if (lost.length > 0) await endLeases(tx, { ids: JSON.stringify(lost) });
}

const expiredLeases = prepared((db, held: { kind: JobKind; steady_now: number }) =>
  db
    .selectFrom("jobs")
    .select("id")
    .where("kind", "=", held.kind)
    .where("status", "=", "running")
    .where("lease_until", "<=", held.steady_now),
);

/** `ids`: a JSON array. */
const endLeases = prepared((db, { ids }: { ids: string }) =>
  db
    .updateTable("jobs")
    .set(UNCLAIMED)
    .where("id", "in", db.selectFrom(jsonTexts(ids).as("listed")).select("listed.value")),
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
