import type { Db } from "../db/database.ts";
import { jsonMember, jsonTexts } from "../db/json.ts";
import { deadJobsWithoutRows } from "../db/orphans.ts";
import { prepared } from "../db/prepared.ts";
import { JOB_RULES, type JobKind } from "./kinds.ts";

/** Takes a job out of the queue, whatever state it is in. */
export const deleteJob = prepared((db, job: { id: string }) =>
  db.deleteFrom("jobs").where("id", "=", job.id),
);

/** Takes a job that was given up out of the queue; returns no row when it is there no more: two may want it at once. */
export const takeDeadJob = prepared((db, job: { id: string }) =>
  db.deleteFrom("jobs").where("id", "=", job.id).where("status", "=", "dead").returning("id"),
);

/** Takes the job with a `dedupe_key` out of the queue, whatever state it is in. */
export const deleteJobWithKey = prepared((db, job: { dedupe_key: string }) =>
  db.deleteFrom("jobs").where("dedupe_key", "=", job.dedupe_key),
);

/** Takes the job with a `dedupe_key` out of the queue unless it runs. */
export const deleteWaitingJobWithKey = prepared((db, job: { dedupe_key: string }) =>
  db.deleteFrom("jobs").where("dedupe_key", "=", job.dedupe_key).where("status", "=", "pending"),
);

/** Jobs that one step takes. */
const AT_ONCE = 200;

/** Takes some jobs that were given up, and of which nothing is left, out of the queue; true while there may be more. */
export async function deleteJobsOfNothing(tx: Db): Promise<boolean> {
  const gone = await deadJobsWithoutRows(tx, AT_ONCE);
  for (const id of gone) await deleteJob(tx, { id });
  return gone.length === AT_ONCE;
}

/**
 * Takes out of the queue the jobs of a kind that name one of `values` as what they are for. Looks through all jobs of
 * the kind.
 */
export async function deleteJobsFor(tx: Db, kind: JobKind, values: string[]): Promise<void> {
  const { names } = JOB_RULES[kind];
  if (names === null || values.length === 0) return;
  const listed = tx.selectFrom(jsonTexts(JSON.stringify(values)).as("listed")).select("listed.value");
  await tx
    .deleteFrom("jobs")
    .where("kind", "=", kind)
    .where(jsonMember("payload", names), "in", listed)
    .execute();
}

/**
 * Takes out of the queue the job that works on a message, or waits to: the one in the lane of its conversation, or in
 * any lane where there is none. A message that began a conversation of its own (`--new`) keeps the lane of the first
 * conversation.
 */
export async function deleteJobOfMessage(
  tx: Db,
  message: { id: string; conversation_id: string | null },
): Promise<void> {
  const any = tx
    .deleteFrom("jobs")
    .where("kind", "=", "route_message")
    .where("status", "in", ["pending", "running"])
    .where(jsonMember("payload", "message_id"), "=", message.id);
  const { numDeletedRows } = await any.where("lane", "=", message.conversation_id).executeTakeFirst();
  if (numDeletedRows === 0n) await any.executeTakeFirst();
}
