import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import { userById } from "../db/users.ts";
import { buryJob, finishJob, type Job, nameOf } from "../jobs/queue.ts";
import { messageById } from "../resources/messages/messages.ts";
import { endOrphans, failMessage, giveUpRun, hasLostState } from "./fail.ts";

/**
 * Ends a message whose inbox or account was deleted while it waited, or one that has ended already. Of a deleted
 * account nothing is told. What is not there at all was not deleted: erasing takes its jobs away as well.
 */
export async function endWithoutInbox(app: App, job: Job<"route_message">): Promise<void> {
  await app.write(async (tx) => {
    const [message] = await messageById(tx, { id: job.payload.message_id });
    const [user] = await userById(tx, { id: message?.user_id ?? nameOf(job.share?.account ?? "") });
    if (user !== undefined && user.deleted_at !== null) return finishJob(tx, job);
    if (message === undefined) {
      app.log.error(NOT_FOUND);
      await buryJob(app, tx, job, NOT_FOUND);
      await endOrphans(app, tx, job);
      return;
    }
    await finishJob(tx, job);
    if (hasLostState(message)) return giveUpRun(app, tx, job);
    const { state, inbox_id } = message;
    if (state === "received" && inbox_id !== null && !(await isDeleted(tx, { id: inbox_id })))
      throw new Error(NO_INBOX);
    await failMessage(app, tx, job, {
      reason: "inbox_deleted",
      error: "The inbox was deleted before the message was worked on.",
    });
  });
}

const NOT_FOUND = "The message that it is for cannot be found: the database may be damaged";
const NO_INBOX = "The inbox of the message cannot be found: the database may be damaged";

/** Whether an inbox is known to be deleted. Its row stays as long as a message names it. */
async function isDeleted(db: Db, { id }: { id: string }): Promise<boolean> {
  const inbox = db.selectFrom("inboxes").select("deleted_at").where("id", "=", id);
  return ((await inbox.executeTakeFirst())?.deleted_at ?? null) !== null;
}
