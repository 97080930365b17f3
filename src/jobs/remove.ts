import type { Db } from "../db/database.ts";
import { jsonMember, jsonTexts } from "../db/json.ts";
import { deadJobsWithoutRows } from "../db/orphans.ts";
import { prepared } from "../db/prepared.ts";
import { UNENDED } from "../db/unfinished.ts";
import { JOB_RULES, type JobKind } from "./kinds.ts";

/** Deletes a job in any state. */
export const deleteJob = prepared((db, job: { id: string }) =>
  db.deleteFrom("jobs").where("id", "=", job.id),
);

/** Deletes a job that was given up and returns it; no row when somebody else was faster. */
export const takeDeadJob = prepared((db, job: { id: string }) =>
  db.deleteFrom("jobs").where("id", "=", job.id).where("status", "=", "dead").returning("id"),
);

/** Deletes the job with a `dedupe_key` in any state. */
export const deleteJobWithKey = prepared((db, job: { dedupe_key: string }) =>
  db.deleteFrom("jobs").where("dedupe_key", "=", job.dedupe_key),
);

/** Deletes the job with a `dedupe_key` unless it runs. */
export const deleteWaitingJobWithKey = prepared((db, job: { dedupe_key: string }) =>
  db.deleteFrom("jobs").where("dedupe_key", "=", job.dedupe_key).where("status", "=", "pending"),
);

/** Deletes what waits in a lane, up to a job. */
export const deleteWaitingInLane = prepared((db, { lane, last_id }: { lane: string; last_id: string }) =>
  db
    .deleteFrom("jobs")
    .where("lane", "=", lane)
    .where(UNENDED)
    .where("status", "=", "pending")
    .where("id", "<=", last_id),
);

/** How many jobs one step deletes. */
const AT_ONCE = 200;

/** Deletes some jobs that were given up and whose rows are gone. Returns true while there may be more. */
export async function deleteJobsOfNothing(tx: Db): Promise<boolean> {
  const gone = await deadJobsWithoutRows(tx, AT_ONCE);
  if (gone.length > 0) await tx.deleteFrom("jobs").where("id", "in", gone).execute();
  return gone.length === AT_ONCE;
}

/** Takes the job of a kind that was given up, and that names `value` as what it is for, out of the queue. */
export async function deleteDeadJobFor(tx: Db, kind: JobKind, value: string): Promise<void> {
  const { names } = JOB_RULES[kind];
  if (names === null) return;
  const dead = tx.deleteFrom("jobs").where("kind", "=", kind).where("status", "=", "dead");
  await dead.where(jsonMember("payload", names), "=", value).execute();
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
 * Deletes the job of a message that runs or waits: it is in the lane of the message's conversation, or in any lane
 * without a conversation. A message that began a new conversation with `--new` keeps the lane of the earlier one.
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
