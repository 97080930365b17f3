import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { JobRow } from "../db/schema.ts";
import { anyKeyed, type KeyRange, pendingKeyed } from "./keyed.ts";
import { type Job, returnJob } from "./queue.ts";

const PREFIX = "waits:";
/** Jobs that one step has looked at. */
const ROWS = 50;

/**
 * Returns a claimed job to the table, where it waits for a time that a rule names. It leaves its lane, as nothing that comes
 * after it in its conversation has to wait for days with it; by its key it is found when the wait is ended.
 */
export async function waitForTime(
  tx: Db,
  job: Job<"route_message">,
  { inbox_id, until }: { inbox_id: string; until: number },
): Promise<void> {
  const dedupe_key = `${PREFIX}${inbox_id}:${job.payload.message_id}`;
  await returnJob(tx, job, { run_at: until, lane: null, dedupe_key });
}

/** Puts a claimed job that has waited back into its lane, where it has its turn by its age. */
export async function backToLane(
  tx: Db,
  job: Job<"route_message">,
  { lane, now }: { lane: string | null; now: number },
): Promise<void> {
  await returnJob(tx, job, { run_at: now, lane, dedupe_key: null });
}

/** Whether a job waits for a time that a rule names. */
export function waitsForTime({ kind, dedupe_key }: Pick<JobRow, "kind" | "dedupe_key">): boolean {
  return kind === "route_message" && dedupe_key?.startsWith(PREFIX) === true;
}

/** Whether anything waits in an inbox. */
export async function hasWaiting(tx: Db, inbox_id: string): Promise<boolean> {
  const found = await anyKeyed(tx, keysOf(inbox_id));
  return found.length > 0;
}

/**
 * Has some of what waits in an inbox looked at now: what comes behind the key `after`, in its order. Returns the last
 * key, and undefined once there are no more. What goes on waiting after it was looked at is not met again so.
 */
export async function lookAtSome(
  app: App,
  tx: Db,
  { inbox_id, after = "" }: { inbox_id: string; after?: string | undefined },
): Promise<string | undefined> {
  const { from, below } = keysOf(inbox_id);
  const moved = await moveUp(tx, { from: after === "" ? from : after, below, now: app.now() });
  app.worker?.wake("route_message");
  if (moved.length < ROWS) return undefined;
  return moved.reduce((last, { dedupe_key }) => ((dedupe_key ?? "") > last ? (dedupe_key ?? "") : last), "");
}

function keysOf(inbox_id: string): KeyRange {
  const from = `${PREFIX}${inbox_id}:`;
  return { from, below: `${from}g` };
}

/** Ends the wait of one message, which has its turn in this lane; false if it does not wait. */
export async function endWait(
  app: App,
  tx: Db,
  { inbox_id, message_id, lane }: { inbox_id: string; message_id: string; lane: string | null },
): Promise<boolean> {
  const dedupe_key = `${PREFIX}${inbox_id}:${message_id}`;
  const { numUpdatedRows } = await tx
    .updateTable("jobs")
    .set({ run_at: app.now(), lane, dedupe_key: null })
    .where("dedupe_key", "=", dedupe_key)
    .where("status", "=", "pending")
    .executeTakeFirst();
  app.worker?.wake("route_message");
  return numUpdatedRows > 0n;
}

const moveUp = prepared((db, { from, below, now }: KeyRange & { now: number }) =>
  db
    .updateTable("jobs")
    .set((eb) => ({ run_at: eb.fn<number>("min", ["run_at", eb.val(now)]) }))
    .where("id", "in", pendingKeyed(db, { from, below, limit: ROWS }))
    .returning("dedupe_key"),
);
