import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { MessageRow } from "../db/schema.ts";
import { dropKeyed, type KeyRange } from "./keyed.ts";
import { type Job, returnJob } from "./queue.ts";

/**
 * The run time of a paused inbox's jobs, the last second of the year 9999: they never become due, and no claim looks at
 * them.
 */
export const PAUSED_AT = 253_402_300_799;

const PREFIX = "paused:";

/**
 * Returns the options to enqueue a job of a paused inbox with. The key finds the job when the inbox resumes, sorted by
 * message id and so by time.
 */
export function untilResumed(inbox_id: string, message_id: string): { run_at: number; dedupe_key: string } {
  return { run_at: PAUSED_AT, dedupe_key: `${PREFIX}${inbox_id}:${message_id}` };
}

/** Returns the ids of those of these messages whose work waits until their inbox resumes. */
export async function waitingAmong(
  db: Db,
  messages: Pick<MessageRow, "id" | "inbox_id" | "state">[],
): Promise<Set<string>> {
  const received = messages.filter(({ state }) => state === "received");
  if (received.length === 0) return new Set();
  const keys = new Map(received.map(({ id, inbox_id }) => [untilResumed(inbox_id ?? "", id).dedupe_key, id]));
  const jobs = db
    .selectFrom("jobs")
    .select("dedupe_key")
    .where("dedupe_key", "in", [...keys.keys()]);
  const found = await jobs.execute();
  return new Set(found.map(({ dedupe_key }) => keys.get(dedupe_key ?? "") ?? ""));
}

/** Returns a claimed job to the queue, where it waits until its inbox resumes. */
export async function setAside(tx: Db, job: Job<"route_message">, inbox_id: string): Promise<void> {
  await returnJob(tx, job, untilResumed(inbox_id, job.payload.message_id));
}

/** Makes the first `limit` jobs that wait for an inbox due, at their original place in the queue. Returns how many. */
export async function resumeSome(tx: Db, inbox_id: string, limit: number): Promise<number> {
  const resumed = await resume(tx, { ...waitingFor(inbox_id), limit });
  return resumed.length;
}

/** Returns the bounds of the keys of jobs that wait for an inbox: of all, or of those before `message_id`. */
function waitingFor(inbox_id: string, message_id = "g"): KeyRange {
  return { from: `${PREFIX}${inbox_id}:`, below: `${PREFIX}${inbox_id}:${message_id}` };
}

const resume = prepared((db, { from, below, limit }: KeyRange & { limit: number }) =>
  db
    .updateTable("jobs")
    .set((eb) => ({ run_at: eb.ref("created"), dedupe_key: null }))
    .where("id", "in", (eb) =>
      eb
        .selectFrom("jobs")
        .select("jobs.id")
        .where("dedupe_key", ">", from)
        .where("dedupe_key", "<", below)
        .orderBy("dedupe_key")
        .limit(limit),
    )
    .returning("id"),
);

/** Deletes the first jobs that wait for an inbox and came before the id `below`. Returns the ids of their messages. */
export async function dropWaiting(
  tx: Db,
  { inbox_id, below, limit }: { inbox_id: string; below: string; limit: number },
): Promise<string[]> {
  const keys = waitingFor(inbox_id, below);
  const dropped = await dropKeyed(tx, { ...keys, limit });
  return dropped.map(({ dedupe_key }) => dedupe_key?.slice(keys.from.length) ?? "");
}
