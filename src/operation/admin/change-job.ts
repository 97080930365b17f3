import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { JobRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { tryAgainNow } from "../../jobs/again.ts";
import type { JobKind, JobPayloads } from "../../jobs/kinds.ts";
import { DAMAGED_PAYLOAD, payloadOf, shareOf } from "../../jobs/queue.ts";
import { PAUSED_AT } from "../../jobs/paused.ts";
import { deleteJob } from "../../jobs/remove.ts";
import { endlessShift, takeTurns } from "../../jobs/shift.ts";
import type { Ended } from "../../pipeline/fail.ts";
import { bringSomeForward, failSomePending } from "../../resources/webhooks/pending.ts";
import { dropOf, reviveOf } from "../jobs.ts";
import { endItsWait, nothingToRetry } from "../revive.ts";
import { readJob } from "./queue.ts";

const DROPPED = "The operator of this server took it out of the queue";

/** Drops deliveries of an endpoint in several transactions, until the rest can be dropped in one with the job. */
async function dropMostDeliveries(app: App, id: string): Promise<void> {
  const { kind } = await readJob(app.db, id);
  if (kind !== "deliver_webhooks") return;
  await takeTurns(endlessShift(app), async (tx) => {
    const job = await readJob(tx, id);
    refuseRunning(job);
    const endpoint_id = endpointOf(job);
    return endpoint_id !== undefined && failSomePending(tx, endpoint_id, "dropped");
  });
}

/**
 * Drops a job for good; `reason` is the operator's, for those who waited for it. Returns the job, and the new state of
 * its messages.
 */
export async function dropJob(
  app: App,
  id: string,
  reason: string | null,
): Promise<{ job: JobRow; ended: Ended[] }> {
  await dropMostDeliveries(app, id);
  const dropped = await app.write(async (tx) => {
    const job = await readJob(tx, id);
    refuseRunning(job);
    const payload = payloadOf(job);
    const drop = dropOf(job, payload);
    if (!drop)
      throw new AppError("conflict", `A job of the kind ${job.kind} cannot be dropped: it has to be done.`, {
        fix:
          job.last_error === null
            ? "It is done when its time comes; `mailwright queue retry` has it tried at once."
            : "Mend what its last error says; then `mailwright queue retry` has it tried at once.",
      });
    await deleteJob(tx, { id: job.id });
    const share = job.account === null ? null : shareOf(job.account, job.account_slots);
    const words = `${DROPPED}${reason === null ? "." : `: ${reason}`}`;
    const held = { payload: payload as JobPayloads[JobKind], share };
    return { job, ended: (await drop(app, tx, held, words)) ?? [] };
  });
  // The next job of its conversation may start now.
  app.worker?.wakeAll();
  app.log.info({ job_id: id, kind: dropped.job.kind, reason }, "job dropped by the operator");
  return dropped;
}

/** Retries a job at once: one that waits for its time, or one that was given up. */
export async function retryJob(app: App, id: string): Promise<JobRow> {
  const job = await readJob(app.db, id);
  refuseRunning(job);
  await (job.status === "dead" ? revive(app, job) : moveUp(app, job));
  app.worker?.wakeAll();
  return job;
}

async function revive(app: App, job: JobRow): Promise<void> {
  const payload = payloadOf(job);
  if (payload === DAMAGED_PAYLOAD) throw nothingToRetry();
  await reviveOf(job)(app, job, payload);
}

/**
 * Makes a waiting job due now. This attempt is an extra one: if it fails, the job counts no more failures than before.
 */
async function moveUp(app: App, waiting: JobRow): Promise<void> {
  const { id } = waiting;
  if (await endItsWait(app, waiting)) return;
  await moveUpMostDeliveries(app, waiting);
  await app.write(async (tx) => {
    const now = app.now();
    refusePaused(await readJob(tx, id));
    const job = await tryAgainNow(tx, { id, now });
    if (job) await moveUpItsWork(tx, job, now);
  });
}

/**
 * Makes deliveries of an endpoint due now in several transactions, until the rest can be made so in one with the job. If
 * that does not come about, they are attempted when the job runs.
 */
async function moveUpMostDeliveries(app: App, waiting: JobRow): Promise<void> {
  const endpoint_id = endpointOf(waiting);
  if (endpoint_id === undefined) return;
  await takeTurns(endlessShift(app), async (tx) => {
    const { status, run_at } = await readJob(tx, waiting.id);
    const now = app.now();
    return status === "pending" && run_at > now && bringSomeForward(tx, endpoint_id, now);
  });
}

/** Makes the deliveries of an endpoint due now as well: each has its own time, which the job follows. */
async function moveUpItsWork(tx: Db, job: JobRow, now: number): Promise<void> {
  const endpoint_id = endpointOf(job);
  if (endpoint_id === undefined) return;
  while (await bringSomeForward(tx, endpoint_id, now));
}

/** The endpoint to which a job makes deliveries; undefined for any other job. */
function endpointOf(job: JobRow): string | undefined {
  const payload = payloadOf(job);
  if (job.kind !== "deliver_webhooks" || payload === DAMAGED_PAYLOAD) return undefined;
  return (payload as JobPayloads["deliver_webhooks"]).endpoint_id;
}

function refusePaused({ run_at }: JobRow): void {
  if (run_at !== PAUSED_AT) return;
  throw new AppError("conflict", "This job waits because its inbox is paused by its owner.", {
    fix: "It goes on by itself as soon as they have the inbox go on.",
  });
}

function refuseRunning({ status }: JobRow): void {
  if (status !== "running") return;
  throw new AppError("conflict", "This job is being worked on right now.", {
    fix: "Look again in a minute: it is done by then, or waits for another try.",
  });
}
