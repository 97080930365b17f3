import type { App } from "../app.ts";
import { inboxToAnswerFrom } from "../messages/withheld.ts";
import { finishJob, type Job } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { type MailHeaders, readHeaders } from "../mail/headers.ts";
import { failureWords } from "./answer.ts";
import { mayAnswer, prepareReply } from "./reply.ts";
import type { MessageRow } from "../db/schema.ts";
import { messageOf } from "../errors.ts";
import { hasAuthority, readStoredMail } from "./input.ts";

/** Queues the notice of a message that ended outside of a run, if its sender may be written to. */
export async function tellFailureNow(app: App, job: Job<"tell_failure">, signal: AbortSignal): Promise<void> {
  const notice = await prepareNotice(app, job.payload.message_id);
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    if (notice === undefined) return;
    const reply_status = await notice.queue(tx, null);
    await tx.updateTable("messages").set({ reply_status }).where("id", "=", job.payload.message_id).execute();
  });
}

async function prepareNotice(app: App, id: string) {
  const message = await app.db.selectFrom("messages").selectAll().where("id", "=", id).executeTakeFirst();
  if (message?.state !== "failed" || !hasAuthority(message)) return undefined;
  const inbox = await inboxToAnswerFrom(app.db, message);
  if (typeof inbox === "string" || !mayAnswer(message, inbox)) return undefined;
  const changed = (JSON.parse(message.steps) as unknown[]).length > 0;
  const markdown = failureWords(message.error ?? "", { changed });
  const headers = await headersOf(app, message);
  return prepareReply(app, { message, inbox, headers }, { kind: "notice", markdown });
}

/** That the mail cannot be read may be what made it fail: then the notice does without what its header says. */
async function headersOf(app: App, message: MessageRow): Promise<MailHeaders> {
  try {
    return (await readStoredMail(app, message)).headers;
  } catch (error) {
    app.log.warn(
      { problem: messageOf(error) },
      "a notice does without the header of the mail that it is about",
    );
    return readHeaders(new Uint8Array());
  }
}
