import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { JobRow } from "../db/schema.ts";
import { holdOn } from "./holds.ts";
import { JOB_RULES, type JobKind, type JobPayloads } from "./kinds.ts";
import { type Job, UNCLAIMED } from "./queue.ts";
import { memoryLeft, type Room, type Use, type Uses, whyNot } from "./shares.ts";

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
  const [next] = await nextRun(tx, { kind, now: options.now });
  return { ...(await claimPending(tx, kind, options)), next_at: next?.run_at ?? null };
}

/** Takes up to `limit` due jobs of a kind that are pending; `alone` as it is to be said the next time. */
export async function claimPending<K extends JobKind>(
  tx: Db,
  kind: K,
  { now, leaseEnd, limit, alone = false, ...given }: ClaimOptions,
): Promise<{ jobs: Job<K>[]; full: Set<string>; alone: boolean }> {
  const picked: Picked = { ...given, rows: [], uses: given.uses.fork() };
  const found = await fairlyDue(tx, { kind, now, limit }, { picked, alone });
  const lease_until = leaseEnd(JOB_RULES[kind].lease_seconds);
  const jobs: Job<K>[] = [];
  for (const row of picked.rows) {
    await takeLease(tx, { id: row.id, lease_until });
    jobs.push({
      id: row.id,
      kind,
      payload: JSON.parse(row.payload) as JobPayloads[K],
      attempts: row.attempts + 1,
      failures: row.failures,
      ...useOf(row),
    });
  }
  return { jobs, ...found };
}

type DueRow = Pick<
  JobRow,
  "id" | "payload" | "attempts" | "failures" | "account" | "account_slots" | "weight" | "target"
>;

/**
 * The oldest due jobs, but of no account more than it may run: those of others move up. An account of which nothing
 * runs comes before those with more, which then share what is left.
 */
async function fairlyDue(
  tx: Db,
  due: Due,
  { picked, alone }: { picked: Picked; alone: boolean },
): Promise<{ full: Set<string>; alone: boolean }> {
  const busy = alone ? null : await pick(tx, due, picked, 1);
  const others = picked.rows.length;
  const full = busy?.size === 0 ? busy : await pick(tx, due, picked, Number.POSITIVE_INFINITY);
  return { full, alone: others === 0 && picked.rows.length > 0 };
}

interface Picked extends Pick<ClaimOptions, "free" | "room"> {
  rows: DueRow[];
  /** What was picked counts as running. */
  uses: Uses;
}

/** Adds to `picked`, and gives the accounts that have more due than `most`, or than their share, lets them run. */
async function pick(tx: Db, due: Due, picked: Picked, most: number): Promise<Set<string>> {
  const { rows } = picked;
  const full = { account: new Set<string>(), target: new Set<string>() };
  const passedOver = () => full.account.size + full.target.size;
  while (rows.length < due.limit) {
    const limit = due.limit - rows.length;
    const weight = memoryLeft(picked.uses, picked.room);
    const not = rows.map(({ id }) => id);
    const before = passedOver();
    const found = await (before + not.length === 0
      ? dueJobs(tx, { ...due, weight })
      : dueOf(tx, { ...due, limit, weight }, { ...full, not }).execute());
    const looked_at = addWithRoom(picked, found, { full, most });
    // There is memory for smaller ones only: those are looked for.
    if (looked_at < found.length) continue;
    // Nobody's turn has come in place of another's, or nobody else is there.
    if (found.length < limit || passedOver() === before) break;
  }
  return full.account;
}

/** Adds those that may run; of the others notes whose turn it is not. Ends where the memory does; gives how far it came. */
function addWithRoom(
  picked: Picked,
  found: DueRow[],
  { full, most }: { full: Record<"account" | "target", Set<string>>; most: number },
): number {
  for (const [index, row] of found.entries()) {
    const use = useOf(row);
    if (use.weight > memoryLeft(picked.uses, picked.room)) return index;
    const reason = whyNot(use, { ...picked, free: picked.free - picked.rows.length, most });
    if (reason === null) {
      picked.uses.add(use);
      picked.rows.push(row);
    } else full[reason].add(row[reason] ?? "");
  }
  return found.length;
}

function useOf({ account, account_slots, weight, target }: DueRow): Use {
  return { share: account === null ? null : { account, slots: account_slots }, weight, target };
}

interface Due {
  kind: JobKind;
  now: number;
  limit: number;
}

/** Only those that are no larger than `weight`. */
type DueThatFits = Due & { weight: number };

interface PassedOver {
  account: Set<string>;
  target: Set<string>;
  /** Ids. */
  not: string[];
}

const NOBODY: PassedOver = { account: new Set(), target: new Set(), not: [] };

const freeExpired = prepared((db, held: { kind: JobKind; steady_now: number }) =>
  db
    .updateTable("jobs")
    .set(UNCLAIMED)
    .where("kind", "=", held.kind)
    .where("status", "=", "running")
    .where("lease_until", "<=", held.steady_now),
);

const dueJobs = prepared((db, due: DueThatFits) => dueOf(db, due, NOBODY));

function dueOf(db: Db, due: DueThatFits, { account, target, not }: PassedOver) {
  let rows = db
    .selectFrom("jobs as job")
    .select(["id", "payload", "attempts", "failures", "account", "account_slots", "weight", "target"])
    .where("kind", "=", due.kind)
    .where("status", "=", "pending")
    .where("run_at", "<=", due.now)
    .where("weight", "<=", due.weight)
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
  if (not.length > 0) rows = rows.where("id", "not in", not);
  for (const [column, values] of [
    ["account", account],
    ["target", target],
  ] as const)
    if (values.size > 0)
      rows = rows.where((eb) => eb.or([eb(column, "is", null), eb(column, "not in", [...values])]));
  return rows;
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

const nextRun = prepared((db, due: Pick<Due, "kind" | "now">) =>
  db
    .selectFrom("jobs")
    .select("run_at")
    .where("kind", "=", due.kind)
    .where("status", "=", "pending")
    .where("run_at", ">", due.now)
    .orderBy("run_at")
    .limit(1),
);
