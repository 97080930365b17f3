import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { JobRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import type { JobKind, JobPayloads } from "../../jobs/kinds.ts";
import { DAMAGED_PAYLOAD, type Job, payloadOf, shareOf } from "../../jobs/queue.ts";
import { dropSending, endOrphanMails, sendAgain } from "../../mail/sending/outgoing.ts";
import { retryMessage } from "../../resources/messages/retry.ts";
import { DROPPED_REASON, dropRun, type Ended, endOrphans } from "../../pipeline/fail.ts";
import { dropTelling } from "../../pipeline/tell-failure.ts";
import { endlessShift, takeTurns } from "../../jobs/shift.ts";
import { bringForward, failSomePending } from "../../resources/webhooks/pending.ts";
import { readJob } from "./queue.ts";

const DROPPED = "The operator of this server took it out of the queue";

type Dropped<K extends JobKind> = Pick<Job<K>, "payload" | "share">;

/** Says which messages it ends, where that is what it means. */
type Drop<K extends JobKind> = (
  app: App,
  tx: Db,
  job: Dropped<K>,
  words: string,
) => Promise<Ended[] | undefined | void>;

/** What it means for the rest that a job is dropped. Kinds that are not here must be done some day, or something is left half. */
const DROPS: { [K in JobKind]?: Drop<K> } = {
  route_message: dropRun,
  send_mail: dropSending,
  deliver_webhooks: dropDeliveries,
  fan_out_event: nothing,
  tell_failure: dropTelling,
  mail_code: nothing,
  mail_notice: nothing,
  sum_up_notices: nothing,
  mail_returns: nothing,
};

/** Until no more wait than can be dropped at once with the job. */
async function dropMostDeliveries(app: App, id: string): Promise<void> {
  const { kind } = await readJob(app.db, id);
  if (kind !== "deliver_webhooks") return;
  await takeTurns(endlessShift(app), async (tx) => {
    const job = await readJob(tx, id);
    refuseRunning(job);
    const { endpoint_id } = payloadOf(job) as Partial<JobPayloads["deliver_webhooks"]>;
    return endpoint_id !== undefined && failSomePending(tx, endpoint_id, "dropped");
  });
}

async function dropDeliveries(_app: App, tx: Db, { payload }: Dropped<"deliver_webhooks">): Promise<void> {
  while (await failSomePending(tx, payload.endpoint_id, "dropped"));
}

async function nothing(): Promise<void> {}

/** What it means that a job is dropped of which nobody can read what it is for: that is whatever no job is for. */
const LOST: { [K in JobKind]?: Drop<K> } = {
  route_message: (app, tx, job, error) => endOrphans(app, tx, job, { reason: DROPPED_REASON, error }),
  send_mail: (app, tx, job, response) => endOrphanMails(app, tx, job, { status: "suppressed", response }),
};

function dropOf({ kind }: JobRow, payload: object): Drop<JobKind> | undefined {
  const drop = payload === DAMAGED_PAYLOAD ? (LOST[kind as JobKind] ?? nothing) : DROPS[kind as JobKind];
  return drop as Drop<JobKind> | undefined;
}

/**
 * Takes a job out of the queue for good; `reason` is the operator's, for those who waited for it. Returns the job, and
 * what the messages are then that it was for.
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
        fix: "Mend what its last error says; then `mailwright queue retry` has it tried at once.",
      });
    await tx.deleteFrom("jobs").where("id", "=", job.id).execute();
    const share = job.account === null ? null : shareOf(job.account, job.account_slots);
    const words = `${DROPPED}${reason === null ? "." : `: ${reason}`}`;
    const held = { payload: payload as JobPayloads[JobKind], share };
    return { job, ended: (await drop(app, tx, held, words)) ?? [] };
  });
  // The next one of its conversation may be begun.
  app.worker?.wakeAll();
  app.log.info({ job_id: id, kind: dropped.job.kind, reason }, "job dropped by the operator");
  return dropped;
}

/** Has a job tried at once: one that waits for its time, or one that was given up. */
export async function retryJob(app: App, id: string): Promise<JobRow> {
  const job = await readJob(app.db, id);
  refuseRunning(job);
  await (job.status === "dead" ? revive(app, job) : moveUp(app, job));
  app.worker?.wakeAll();
  return job;
}

/** A try that the operator asks for is one more: should it fail, no failure is counted besides those before it. */
async function moveUp(app: App, { id }: JobRow): Promise<void> {
  await app.write(async (tx) => {
    const now = app.now();
    const job = await tx
      .updateTable("jobs")
      .set((eb) => ({
        run_at: now,
        attempts: eb("attempts", "-", eb.fn<number>("min", ["failures", eb.val(1)])),
        failures: eb.fn<number>("max", [eb("failures", "-", 1), eb.val(0)]),
      }))
      .where("id", "=", id)
      .where("status", "=", "pending")
      .where("run_at", ">", now)
      .returningAll()
      .executeTakeFirst();
    if (job) await moveUpItsWork(tx, job, now);
  });
}

/** Each delivery has a time of its own, which the job only follows. */
async function moveUpItsWork(tx: Db, job: JobRow, now: number): Promise<void> {
  const payload = payloadOf(job);
  if (job.kind !== "deliver_webhooks" || payload === DAMAGED_PAYLOAD) return;
  await bringForward(tx, (payload as JobPayloads["deliver_webhooks"]).endpoint_id, now);
}

/** What a job stood for has ended with it, so it begins anew. */
async function revive(app: App, job: JobRow): Promise<void> {
  const payload = payloadOf(job);
  if (payload === DAMAGED_PAYLOAD) throw nothingLeft();
  if (job.kind === "route_message") {
    const { message_id } = payload as JobPayloads["route_message"];
    const admit = async (tx: Db): Promise<void> => {
      await tx.deleteFrom("jobs").where("id", "=", job.id).execute();
    };
    await retryMessage(app, await ownerOf(app.db, message_id), { id: message_id, admit, now: true });
  } else if (job.kind === "send_mail") {
    await app.write(async (tx) => {
      await tx.deleteFrom("jobs").where("id", "=", job.id).execute();
      if (!(await sendAgain(app, tx, payload as JobPayloads["send_mail"]))) throw nothingLeft();
    });
  } else if (job.kind === "fan_out_event" || job.kind === "deliver_webhooks") throw nothingLeft();
  else await app.write((tx) => beginAgain(app, tx, job));
}

async function beginAgain(app: App, tx: Db, { id }: JobRow): Promise<void> {
  const anew = { status: "pending", run_at: app.now(), attempts: 0, failures: 0, last_error: null } as const;
  await tx.updateTable("jobs").set(anew).where("id", "=", id).where("status", "=", "dead").execute();
}

async function ownerOf(db: Db, message_id: string): Promise<UserRow> {
  const owner = await db
    .selectFrom("users")
    .innerJoin("messages", "messages.user_id", "users.id")
    .selectAll("users")
    .where("messages.id", "=", message_id)
    .executeTakeFirst();
  if (owner) return owner;
  throw nothingLeft();
}

function refuseRunning({ status }: JobRow): void {
  if (status !== "running") return;
  throw new AppError("conflict", "This job is being worked on right now.", {
    fix: "Look again in a minute: it is done by then, or waits for another try.",
  });
}

function nothingLeft(): AppError {
  return new AppError("conflict", "There is nothing left of this job that could be tried again.", {
    fix: "`mailwright queue drop` takes it off the list.",
  });
}
