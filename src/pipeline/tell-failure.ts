import type { App } from "../app.ts";
import { CANCELLED_REASON } from "../resources/messages/cancelled.ts";
import { answerNow } from "../resources/messages/withheld.ts";
import { afterCommit, type Db } from "../db/database.ts";
import { storedJson } from "../lib/stored-json.ts";
import { finishJob, type Job } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { type MailHeaders, readHeaders } from "../mail/reading/headers.ts";
import { written } from "../mail/writing/written.ts";
import { callName } from "../trust/shown/call-name.ts";
import { failureWords, sendAgain } from "./answer.ts";
import { mayAnswer, type PreparedReply, prepareReply } from "./reply.ts";
import { isOwnersMatter, tellOwnerInstead } from "./tell-owner.ts";
import type { ApprovalRow, MessageRow } from "../db/schema.ts";
import { messageOf } from "../errors.ts";
import { isRefusal, refusalFor } from "../reasons.ts";
import { isRunOf } from "../resources/approvals/approvals.ts";
import { approvalById } from "../resources/approvals/view.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { asCode, asText } from "../trust/shown/as-code.ts";
import { hasAuthority } from "../resources/messages/authority.ts";
import { readStoredMail } from "./input.ts";

/** Queues the notice of a message that ended outside of a run, if its sender may be written to. */
export async function tellFailureNow(app: App, job: Job<"tell_failure">, signal: AbortSignal): Promise<void> {
  const notice = await prepareNotice(app, job.payload.message_id);
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    if (notice === undefined) return;
    // An earlier try that was given up may have left its error.
    await tx
      .updateTable("messages")
      .set({ reply_error: null })
      .where("id", "=", job.payload.message_id)
      .execute();
    const reply_status = await notice.queue(tx, null);
    await tx.updateTable("messages").set({ reply_status }).where("id", "=", job.payload.message_id).execute();
  });
}

async function prepareNotice(app: App, id: string): Promise<PreparedReply | undefined> {
  const stored = await app.db.selectFrom("messages").selectAll().where("id", "=", id).executeTakeFirst();
  if (stored?.state === "rejected") return prepareRefusal(app, stored);
  if (stored?.state !== "failed" && stored?.state !== "limited") return undefined;
  const instead = insteadOf(app, stored);
  const now = await answerNow(app.db, stored);
  if (now.why !== null) return instead;
  const { inbox, authority } = now;
  const message = { ...stored, authority };
  if (!hasAuthority(message) || !mayAnswer(message, inbox)) return instead;
  const markdown = (await wordsOfAnswer(app, message)) ?? wordsOf(app, message);
  const headers = await headersOf(app, message);
  return prepareReply(
    app,
    { message, inbox, headers },
    { kind: "notice", words: written(markdown, { own: true }) },
  );
}

/** The notice of a mail that was taken for others of its recipients, and refused for this inbox. */
async function prepareRefusal(app: App, message: MessageRow): Promise<PreparedReply | undefined> {
  const now = await answerNow(app.db, message);
  if (now.why !== null || !mayAnswer(message, now.inbox)) return undefined;
  const { inbox } = now;
  const { reason } = message;
  const why = reason !== null && isRefusal(reason) ? refusalFor(reason).text : "";
  const words = `Your mail was not taken for ${asCode(addressOf(inbox))}.\n\n${asText(why)}\n\nFor others that it names it was taken.`;
  const headers = readHeaders(new Uint8Array());
  return prepareReply(
    app,
    { message, inbox, headers },
    { kind: "notice", words: written(words, { own: true }) },
  );
}

/** The owner has a letter about a limit in any case. */
function insteadOf(app: App, message: MessageRow): PreparedReply | undefined {
  if (message.state === "limited" || !isOwnersMatter(message, message.reason)) return undefined;
  return tellOwnerInstead(app, message);
}

/** What there is to say of a request that a failed message has answered; undefined where it has decided nothing about one. */
async function wordsOfAnswer(app: App, message: MessageRow): Promise<string | undefined> {
  const { approval_id, user_id, state, reason, error } = message;
  if (approval_id === null || state !== "failed") return undefined;
  const [approval] = await approvalById(app.db, { id: approval_id, user_id });
  if (approval === undefined) return undefined;
  const name = asCode(callName(approval));
  const why = asText(reason === CANCELLED_REASON ? CANCELLED : (error ?? ""));
  const page = `[on its page](${app.base_url}/app/approvals/${approval_id})`;
  if (approval.state === "pending")
    return `Your answer about ${name} could not be worked on.\n\n${why}\n\n**Nothing was called**, and nothing was charged. The request waits as it did: answer its mail once more, or decide ${page}.`;
  if (!isRunOf(approval, message)) return undefined;
  return `${why}\n\nBut ${name} had been called by then, as you allowed. ${HEARD[approval.state] ?? ""} What is known of it stands ${page}. Nothing was charged.`;
}

const HEARD: Partial<Record<ApprovalRow["state"], string>> = {
  done: "It is done, once.",
  failed: "It failed.",
  unknown: "**It may or may not have been done:** look there before you ask for it again.",
};

function wordsOf(app: App, message: MessageRow): string {
  const steps = storedJson<unknown[]>(message.steps, []).length;
  const is_cancelled = message.reason === CANCELLED_REASON;
  const cancelled = steps > 0 ? `${CANCELLED} ${STAYS}` : CANCELLED;
  const said = is_cancelled ? cancelled : (message.error ?? "");
  const again = message.state === "limited" ? sendAgain(app, message) : "";
  return failureWords(said, { changed: steps > 0 && !is_cancelled }) + again;
}

const CANCELLED = "It was cancelled by the owner of this inbox before it was done.";

/** Added to the notice of a cancelled run. Such a run goes on only if its owner tries it again. */
const STAYS = "What tools had changed by then stays so.";

/** Notes that the sender was not told and will not be: the message shows it, and its owner is told. */
export async function giveUpTelling(app: App, tx: Db, { payload }: Job<"tell_failure">): Promise<void> {
  await leaveUntold(app, tx, payload, UNTOLD);
}

/** Ends a notice that the operator takes out of the queue, for `reason`. */
export async function dropTelling(
  app: App,
  tx: Db,
  { payload }: Pick<Job<"tell_failure">, "payload">,
  reason: string,
): Promise<void> {
  await leaveUntold(app, tx, payload, `Nobody was told of the failure. ${reason}`);
}

const UNTOLD = "Nobody was told of the failure, because of a fault of this server; its log says more.";

async function leaveUntold(
  app: App,
  tx: Db,
  { message_id: id }: { message_id: string },
  reply_error: string,
): Promise<void> {
  const message = await tx
    .updateTable("messages")
    .set({ reply_status: "suppressed", reply_error })
    .where("id", "=", id)
    .where("state", "in", ["failed", "limited", "rejected"])
    .returning(["id", "user_id", "authority"])
    .executeTakeFirst();
  if (!message) return;
  app.log.error({ message_id: id }, "nobody was told of a failure");
  afterCommit(tx, () => app.changes.tell(message.user_id, id));
  if (hasAuthority(message)) await tellOwnerInstead(app, message).queue(tx, null);
}

/**
 * The header of a mail. If the mail cannot be read, which may be why it failed, the notice is written without the
 * header.
 */
async function headersOf(app: App, message: MessageRow): Promise<MailHeaders> {
  try {
    return (await readStoredMail(app, message)).headers;
  } catch (error) {
    app.log.info(
      { problem: messageOf(error) },
      "a notice does without the header of the mail that it is about",
    );
    return readHeaders(new Uint8Array());
  }
}
