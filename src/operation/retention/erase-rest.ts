import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { prepared } from "../../db/prepared.ts";
import { clearInbox } from "../../resources/inboxes/delete-inbox.ts";
import { eraseLater, eraseRestLater } from "../../jobs/erase.ts";
import type { JobPayloads } from "../../jobs/kinds.ts";
import { deferJob, finishJob, type Job } from "../../jobs/queue.ts";
import { deleteJobsOfNothing } from "../../jobs/remove.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { clearEndpoint } from "../../resources/webhooks/delete-endpoint.ts";
import { beginShift, isOver, type Step, takeTurns } from "../../jobs/shift.ts";

const AT_ONCE = 100;

/** Deletes the rows that a deleted inbox or endpoint left, in small steps, and finally its own row. */
export async function eraseRestNow(app: App, job: Job<"erase_rest">, signal: AbortSignal): Promise<void> {
  const shift = beginShift(app, signal);
  await takeTurns(shift, clearing(job.payload));
  await takeTurns(shift, deleteJobsOfNothing);
  await writeOutcome(app, signal, async (tx) => {
    if (isOver(shift)) return deferJob(tx, job, app.now());
    await eraseLater(app, tx, []);
    return finishJob(tx, job);
  });
}

function clearing(rest: JobPayloads["erase_rest"]): Step {
  return (tx) =>
    "inbox_id" in rest ? clearInbox(tx, { id: rest.inbox_id }) : clearEndpoint(tx, { id: rest.endpoint_id });
}

/** Enqueues these deletions again, in case their job was lost. */
export function eraseRestsAgain(app: App): Step {
  return async (tx) => {
    for (const { id } of await deadInboxes(tx, {})) await eraseRestLater(app, tx, { inbox_id: id });
    for (const { id } of await deadEndpoints(tx, {})) await eraseRestLater(app, tx, { endpoint_id: id });
    return false;
  };
}

const deadInboxes = prepared((db: Db, _none: object) =>
  db.selectFrom("inboxes").select("id").where("deleted_at", "is not", null).limit(AT_ONCE),
);

const deadEndpoints = prepared((db: Db, _none: object) =>
  db.selectFrom("webhook_endpoints").select("id").where("deleted_at", "is not", null).limit(AT_ONCE),
);
