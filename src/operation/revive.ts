import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { JobRow, UserRow } from "../db/schema.ts";
import { AppError } from "../errors.ts";
import type { JobPayloads } from "../jobs/kinds.ts";
import { beginAgain } from "../jobs/again.ts";
import { deleteJob } from "../jobs/remove.ts";
import { sendAgain } from "../mail/sending/outgoing.ts";
import { retryMessage } from "../resources/messages/retry.ts";

/** Has a job worked on again that was given up; `payload` can be read. */
export type Revive = (app: App, job: JobRow, payload: object) => Promise<void>;

/** The message has ended with its job, so a new one does its work. */
export async function runAgain(app: App, job: JobRow, payload: object): Promise<void> {
  const { message_id } = payload as JobPayloads["route_message"];
  const admit = async (tx: Db): Promise<void> => void (await deleteJob(tx, { id: job.id }));
  await retryMessage(app, await ownerOf(app.db, message_id), { id: message_id, admit, now: true });
}

/** So has the mail. */
export async function mailAgain(app: App, job: JobRow, payload: object): Promise<void> {
  await app.write(async (tx) => {
    await deleteJob(tx, { id: job.id });
    if (!(await sendAgain(app, tx, payload as JobPayloads["send_mail"]))) throw nothingThere();
  });
}

export async function anew(app: App, { id }: JobRow): Promise<void> {
  await app.write((tx) => beginAgain(tx, { id, now: app.now() }));
}

/** For what has ended with its job. */
export async function nothingLeft(): Promise<void> {
  throw nothingThere();
}

export function nothingThere(): AppError {
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
  throw nothingThere();
}
