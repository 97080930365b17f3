import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { JobRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import type { JobPayloads } from "../jobs/kinds.ts";
import { beginAgain } from "../jobs/again.ts";
import { payloadOf } from "../jobs/queue.ts";
import { takeDeadJob } from "../jobs/remove.ts";
import { waitsForTime } from "../jobs/waits.ts";
import { sendAgain } from "../mail/sending/outgoing.ts";
import { goOnNow, retryMessage } from "../resources/messages/retry.ts";

/** Starts a job again that was given up; its `payload` is readable. */
export type Revive = (app: App, job: JobRow, payload: object) => Promise<void>;

/** Runs a message again: it ended when its job was given up, so a new message repeats it. */
export async function runAgain(app: App, job: JobRow, payload: object): Promise<void> {
  const { message_id } = payload as JobPayloads["route_message"];
  const admit = (tx: Db): Promise<void> => take(tx, job);
  await retryMessage(app, await ownerOf(app.db, message_id), {
    id: message_id,
    key_id: undefined,
    admit,
    now: true,
  });
}

/** Ends the wait that a rule asks of a message; false for any other job. */
export async function endItsWait(app: App, job: JobRow): Promise<boolean> {
  if (!waitsForTime(job)) return false;
  const { message_id } = payloadOf(job) as JobPayloads["route_message"];
  return goOnNow(app, await ownerOf(app.db, message_id), message_id);
}

/** Sends a mail again: it ended when its job was given up, so a new job sends it. */
export async function mailAgain(app: App, job: JobRow, payload: object): Promise<void> {
  await app.write(async (tx) => {
    await take(tx, job);
    if (!(await sendAgain(app, tx, payload as JobPayloads["send_mail"]))) throw nothingToRetry();
  });
}

/** Deletes the dead job. Throws when somebody else retries or dropped it first. */
async function take(tx: Db, { id }: JobRow): Promise<void> {
  const [taken] = await takeDeadJob(tx, { id });
  if (taken) return;
  throw new AppError("conflict", "This job is being tried again already, or was dropped.", {
    fix: "Look at the queue: what it is about is under way, or has ended.",
  });
}

export async function retryInPlace(app: App, { id }: JobRow): Promise<void> {
  await app.write((tx) => beginAgain(tx, { id, now: app.now() }));
}

/** Throws, for work that ended with its job and cannot be repeated. */
export async function refuseRetry(): Promise<void> {
  throw nothingToRetry();
}

export function nothingToRetry(): AppError {
  return new AppError("conflict", "There is nothing left of this job that could be tried again.", {
    fix: "`mailwright queue drop` takes it off the list.",
  });
}

async function ownerOf(db: Db, message_id: string): Promise<UserRow> {
  const owner = await db
    .selectFrom("users")
    .innerJoin("messages", "messages.user_id", "users.id")
    .selectAll("users")
    .where("messages.id", "=", message_id)
    .executeTakeFirst();
  if (owner) return owner;
  throw nothingToRetry();
}
