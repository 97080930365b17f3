import { type FailureReason, MESSAGE_STATES } from "../reasons.ts";
import type { App } from "../app.ts";
import { releaseCredit } from "../resources/billing/ledger.ts";
import { apart, type Db } from "../db/database.ts";
import { orphanMessages } from "../db/orphans.ts";
import type { MessageRow } from "../db/schema.ts";
import type { Job } from "../jobs/queue.ts";
import { tellSenderLater } from "../jobs/tell-later.ts";
import { leaveRequest } from "../resources/approvals/approvals.ts";
import { messageById } from "../resources/messages/messages.ts";
import { recordState } from "../resources/messages/events.ts";
import { type Step, toSteps } from "./steps.ts";
import { keepCalls, notedCalls, stepsOfEarlier } from "./tool-journal.ts";

/** How many orphans (see `endOrphans`) one transaction ends. */
const AT_ONCE = 100;

const BROKEN =
  "The run could not be finished because of a fault of this server; its log says more. Try it again later.";

/** Why a message ends as failed, if that is not decided by a run of it. */
export interface Failure {
  reason: FailureReason;
  error: string;
}

export const DROPPED_REASON = "dropped";
const GIVEN_UP: Failure = { reason: "internal", error: BROKEN };

/** The state of a message after it was ended, for the caller that ended it. */
export type Ended = Pick<MessageRow, "id" | "state" | "reason">;

type RunJob = Pick<Job<"route_message">, "payload" | "share">;

/** Ends a message whose job cannot be finished, in the transaction that buries the job. */
export async function giveUpRun(app: App, tx: Db, job: RunJob): Promise<void> {
  await failMessage(app, tx, job, GIVEN_UP);
}

/** Ends the message of a job that the operator takes out of the queue; `error` is the operator's reason. */
export function dropRun(app: App, tx: Db, job: RunJob, error: string): Promise<Ended[]> {
  return failMessage(app, tx, job, { reason: DROPPED_REASON, error });
}

/** Ends the message that a job is for, in the transaction that ends the job. Returns its state then. */
export async function failMessage(app: App, tx: Db, job: RunJob, failure: Failure): Promise<Ended[]> {
  const [message] = await messageById(tx, { id: job.payload.message_id });
  // The message may have been deleted. Or the job is damaged, and there is a message that now has no job.
  if (!message) return endOrphans(app, tx, job, failure);
  if (hasLostState(message))
    app.log.error("the state of a message is damaged in the database: it has failed");
  else if (message.state !== "received") return [message];
  return [await endMessage(app, tx, message, failure)];
}

/** Whether a damaged disk has left a message that had not ended without a state: only its job still tells of it. */
export function hasLostState({ state, completed }: Pick<MessageRow, "state" | "completed">): boolean {
  return completed === null && !MESSAGE_STATES.includes(state);
}

/**
 * Ends messages of an account that wait for a job and have none, which only a damaged database makes; without an
 * account, such messages of all accounts. Returns their state then: at most a hundred, so that a caller who wants all
 * calls again.
 */
export async function endOrphans(
  app: App,
  tx: Db,
  { share }: Pick<Job, "share">,
  failure: Failure = GIVEN_UP,
): Promise<Ended[]> {
  const ended: Ended[] = [];
  for (const id of await orphanMessages(tx, share?.account ?? null, AT_ONCE)) {
    const fault = await apart(tx, async () => {
      const [message] = await messageById(tx, { id });
      if (!message) throw new Error("It cannot be found by its id");
      ended.push(await endMessage(app, tx, message, failure));
    });
    if (fault) app.log.error({ message_id: id, err: fault }, "a message that no job is for cannot be ended");
  }
  const message_ids = ended.map(({ id }) => id);
  if (ended.length > 0) app.log.error({ message_ids }, "messages that no job was for have failed");
  return ended;
}

/** Ends a message as failed. `is_told`: whether its sender is told, if the sender may be. */
export async function endMessage(
  app: App,
  tx: Db,
  message: MessageRow,
  { steps: known, is_told = true, ...failure }: Failure & { steps?: Step[]; is_told?: boolean },
): Promise<Ended> {
  await releaseCredit(app, tx, message);
  const noted = await notedCalls(tx, message.id);
  const steps = JSON.stringify(known ?? toSteps(stepsOfEarlier(noted)));
  await keepCalls(tx, message.id);
  const ended = { state: "failed" as const, ...failure, steps, completed: app.now() };
  await tx.updateTable("messages").set(ended).where("id", "=", message.id).execute();
  await recordState(app, tx, { ...message, ...ended });
  await leaveRequest(app, tx, message, noted);
  if ((message.source === "email" || message.approval_id !== null) && is_told)
    await tellSenderLater(app, tx, message.id);
  setImmediate(() => app.finished.notify(message.id));
  return { id: message.id, state: ended.state, reason: failure.reason };
}
