import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { JobRow } from "../db/schema.ts";
import { type Job, returnJob } from "./queue.ts";

const PREFIX = "waits:";

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

/** Has what waits in an inbox looked at now: the rule that has it wait may be another one, or gone, as its inbox may be. */
export async function lookAtWaiting(app: App, tx: Db, inbox_id: string): Promise<void> {
  const from = `${PREFIX}${inbox_id}:`;
  await moveUp(tx, { from, below: `${from}g`, now: app.now() });
  app.worker?.wake("route_message");
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

const moveUp = prepared((db, { from, below, now }: { from: string; below: string; now: number }) =>
  db
    .updateTable("jobs")
    .set({ run_at: now })
    .where("dedupe_key", ">=", from)
    .where("dedupe_key", "<", below)
    .where("status", "=", "pending")
    .where("run_at", ">", now),
);
