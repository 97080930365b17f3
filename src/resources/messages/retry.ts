import type { App } from "../../app.ts";
import { resetsAt } from "../billing/ledger.ts";
import { historySince } from "../billing/plans.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import type { MessageRow, UserRow } from "../../db/schema.ts";
import { AppError } from "../../errors.ts";
import { inboxById, ownInbox } from "../inboxes/inboxes.ts";
import { refusePaused } from "../inboxes/pause.ts";
import { refuseResting } from "../inboxes/room.ts";
import { acceptRetry, type IncomingFile } from "../../inbound/accept.ts";
import { jsonMember } from "../../db/json.ts";
import type { JobPayloads } from "../../jobs/kinds.ts";
import { storedJson } from "../../lib/stored-json.ts";
import { deleteDeadJobFor } from "../../jobs/remove.ts";
import { sendAgain } from "../../mail/sending/outgoing.ts";
import { liftSuppression } from "../../mail/sending/suppressions.ts";
import { ownMessage, readRun } from "./messages.ts";
import { tryNow, waitsForTry } from "../../jobs/tries.ts";
import { endWait } from "../../jobs/waits.ts";
import { waitsUntil, withoutWait } from "./rules-found.ts";
import { type EarlierMail, workedOn } from "../../inbound/same-mail.ts";
import { UNDER_WAY_OR_DONE } from "../../db/tries.ts";
import { answersKept, firstTry, retryOf } from "./may-retry.ts";
import { factsOf } from "./states.ts";
import { type Brought, broughtWith, refuseOthers } from "./brought.ts";
import { bytesOf } from "./stored-files.ts";
import { contentLost, readBytes } from "./stored-bytes.ts";
import type { RunView } from "./view.ts";

export interface RetryOutcome {
  view: RunView;
  /** When credits come back, for a retry over the credit cap. */
  resets_at?: number;
}

interface Retrying {
  id: string;
  /** The API key of whoever wants it, who answers for it from now on; undefined: whoever has wanted it so far. */
  key_id: string | null | undefined;
  admit: (tx: Db) => void | Promise<void>;
  now?: boolean;
}

/**
 * Does the work of a failed message again as a new message, or mails an answer again that never arrived. `admit` is called in the same transaction, once nothing
 * else stands in the way, and may throw. `now`: the retry is refused if it would end at once for want of credits.
 */
export async function retryMessage(
  app: App,
  user: UserRow,
  { id, key_id, admit, now = false }: Retrying,
): Promise<RetryOutcome> {
  if (await goOnNow(app, user, id)) return { view: await readRun(app, user, id) };
  const message = await retryable(app, app.db, user, id);
  if (retryOf(message) === "send") return mailAnswerAgain(app, user, { id, admit });
  await refuseSecondRetry(app.db, message);
  app.refuseIntake();
  using _held = await holdMaterial(app, message);
  const material = await materialToRepeat(app, message);
  const accept = async (tx: Db): Promise<MessageRow> => {
    // Looked up again: the inbox may have been deleted since.
    const found = await retryable(app, tx, user, id);
    const failed = key_id === undefined ? found : { ...found, key_id };
    await refuseSecondRetry(tx, failed);
    await refuseIfCameAgain(app, tx, failed);
    const inbox = await ownInbox(tx, user, failed.inbox_id ?? "");
    await refuseResting(app, tx, user, inbox);
    refusePaused(inbox);
    const raw_size = await sizeOfRaw(tx, failed);
    await admit(tx);
    const row = await acceptRetry(app, tx, { failed, inbox, user, ...material, raw_size });
    if (now && row.state === "limited") throw conflict(WITHOUT_CREDITS);
    return row;
  };
  const retry = await app.write(accept, { stores: bytesOf(material.files) });
  const view = await readRun(app, user, retry.id);
  return retry.state === "limited" ? { view, resets_at: await resetsAt(app, app.db, user) } : { view };
}

/** Mails the answer again that never arrived, also to an address that got none any more: its owner knows better now. */
async function mailAnswerAgain(
  app: App,
  user: UserRow,
  { id, admit }: { id: string; admit: (tx: Db) => void | Promise<void> },
): Promise<RetryOutcome> {
  await app.write(async (tx) => {
    const message = await retryable(app, tx, user, id);
    const [answer] = retryOf(message) === "send" ? await answersKept(tx, [id]) : [];
    if (!answer) throw conflict(ANSWER_GONE);
    await admit(tx);
    await liftSuppression(tx, user.id, answer.envelope_to);
    await deleteDeadJobFor(tx, "send_mail", answer.id);
    await tx.deleteFrom("undelivered_answers").where("outgoing_id", "=", answer.id).execute();
    await sendAgain(app, tx, { outgoing_id: answer.id });
  });
  return { view: await readRun(app, user, id) };
}

const ANSWER_GONE = {
  message:
    "The answer is not there any more to be mailed again: it is under way, or its mail has been deleted.",
  fix: "Its text is in `result` of the message: send that in another way.",
};

/**
 * Has a message worked on now that waits for a time: as a rule asks, or until its model is asked again. False for any other message.
 */
export async function goOnNow(app: App, user: UserRow, id: string): Promise<boolean> {
  if (!(await waiting(app, app.db, user, id))) return false;
  return app.write(async (tx) => {
    const message = await waiting(app, tx, user, id);
    if (!message) return false;
    if (waitsUntil(message) === null) return tryNow(app, tx, message);
    const { inbox_id, conversation_id: lane } = message;
    if (!(await endWait(app, tx, { inbox_id, message_id: id, lane }))) return false;
    const rules = JSON.stringify(withoutWait(message, app.nowMs()));
    await tx.updateTable("messages").set({ rules, steps: "[]" }).where("id", "=", id).execute();
    afterCommit(tx, () => app.changes.tell(user.id, id));
    return true;
  });
}

async function waiting(app: App, db: Db, user: UserRow, id: string) {
  const [message] = await ownMessage(db, { user_id: user.id, id, since: historySince(app, user) });
  if (message?.state !== "received" || message.inbox_id === null) return undefined;
  const waits = waitsUntil(message) !== null || (await waitsForTry(app, db, message));
  return waits ? { ...message, inbox_id: message.inbox_id } : undefined;
}

const WITHOUT_CREDITS = {
  message: "The account has no credits left, so its message cannot be tried again now.",
  fix: "Try it again when there are some: with the next month, or when you are given more (`mailwright user set-plan`).",
};

async function retryable(app: App, db: Db, user: UserRow, id: string): Promise<MessageRow> {
  const [message] = await ownMessage(db, { user_id: user.id, id, since: historySince(app, user) });
  if (!message) throw new AppError("not_found", "There is no such message.");
  if (retryOf(message) === null) throw conflict(whyNot(message));
  const [inbox] = message.inbox_id === null ? [] : await inboxById(db, { id: message.inbox_id });
  if (!inbox)
    throw conflict({
      message: "The inbox of this message has been deleted.",
      fix: "Send it again, to another inbox.",
    });
  return message;
}

function whyNot({ source, state }: MessageRow): Words {
  const { no_retry } = factsOf(state);
  if (no_retry) return no_retry;
  return source === "test" ? OF_TEST : REDONE;
}

const OF_TEST = {
  message: "This was a test of the inbox.",
  fix: "Test the inbox once more, on its page (`POST /inboxes/{inbox_id}/test`).",
};

/** One at most of all that try the same message again may be waiting, running or done. */
async function refuseSecondRetry(tx: Db, failed: MessageRow): Promise<void> {
  const other = await tx
    .selectFrom("messages")
    .select(["id", "state", "deleted_at"])
    .where("retry_of", "=", firstTry(failed))
    .where("state", "in", UNDER_WAY_OR_DONE)
    .executeTakeFirst();
  if (failed.redone === 1 || (other && other.deleted_at !== null)) throw conflict(REDONE);
  if (!other) return;
  const how = other.state === "done" ? "has been tried again and is done" : "is being tried again";
  throw conflict({
    message: `This message ${how}: see message ${other.id}.`,
    fix: `Its page tells what became of it (\`GET /v1/messages/${other.id}\`).`,
  });
}

const REDONE = {
  message: "This message has been tried again and is done; what was done has been deleted since.",
  fix: "To have the same done once more, send it as a new message.",
};

async function refuseIfCameAgain(app: App, tx: Db, failed: MessageRow): Promise<void> {
  const other = await workedOn(app, tx, failed);
  if (!other) return;
  const where = other.id === null ? "; its message has been deleted since" : `: see message ${other.id}`;
  throw conflict({
    message: `This mail ${becameOfOther(other)}${where}.`,
    fix: "To have the same done again, send it as a new mail.",
  });
}

function becameOfOther({ state, called }: EarlierMail): string {
  if (called) return "came once more and failed after its tools had been called";
  return state === "done" ? "came once more and is done" : "came once more and is being worked on";
}

/** What a message brought along that is not part of a raw mail. */
export interface Material {
  content: string | null;
  files: IncomingFile[];
}

/** How long whoever asks is to wait while too much is being read. */
const CROWDED_SECONDS = 5;
/** It is held as it was read, and as it is written. */
const COPIES = 2;

/** Reserves memory for what `materialToRepeat` reads. Throws `unavailable` where too much is being read at once. */
export async function holdMaterial(
  app: App,
  { id, user_id, raw_mail_id }: Pick<MessageRow, "id" | "user_id" | "raw_mail_id">,
): Promise<Disposable | undefined> {
  if (raw_mail_id !== null) return undefined;
  const { bytes } = await app.db
    .selectFrom("attachments")
    .select((eb) => eb.fn.coalesce(eb.fn.sum<number>("size"), eb.val(0)).as("bytes"))
    .where("message_id", "=", id)
    .where("direction", "=", "in")
    .executeTakeFirstOrThrow();
  const piece = app.bodyMemory.take(user_id, COPIES * bytes);
  if (piece !== undefined) return piece;
  throw new AppError("unavailable", "Too many messages with large files are being begun again at once.", {
    fix: `Try it again in ${CROWDED_SECONDS} seconds, and fewer at the same time.`,
    retry_after_seconds: CROWDED_SECONDS,
  });
}

/**
 * Reads what another run of a message needs a copy of. A raw mail is shared: both messages name the same one, so that it is purged for
 * both. Throws when it is no longer kept.
 */
export async function materialToRepeat(app: App, failed: MessageRow): Promise<Material> {
  if (failed.raw_mail_id !== null) return { content: null, files: [] };
  const stored = await app.db
    .selectFrom("message_contents")
    .select(["content", "purged_at"])
    .where("message_id", "=", failed.id)
    .executeTakeFirst();
  if (stored && stored.purged_at !== null) throw purged();
  const files = await readFiles(app, failed.id);
  refuseOthers(await broughtTo(app.db, failed), { content: stored, files });
  return { content: stored?.content ?? null, files };
}

/** What a call came with; undefined where neither its message says it nor, of an older version, a job that was given up. */
export async function broughtTo(db: Db, message: MessageRow): Promise<Brought | undefined> {
  const { id } = message;
  const brought = broughtWith(message);
  if (brought !== undefined) return brought;
  const job = await db
    .selectFrom("jobs")
    .select("payload")
    .where("kind", "=", "route_message")
    .where("status", "=", "dead")
    .where(jsonMember("payload", "message_id"), "=", id)
    .executeTakeFirst();
  return job && storedJson<JobPayloads["route_message"]>(job.payload, { message_id: id }).brought;
}

/**
 * The size of the raw mail; 0 for a call. Throws when the mail is no longer kept. To be called in the transaction of
 * the retry, after which nothing purges the mail.
 */
export async function sizeOfRaw(tx: Db, { raw_mail_id }: MessageRow): Promise<number> {
  if (raw_mail_id === null) return 0;
  const raw = await tx
    .selectFrom("raw_mails")
    .select(["size", "purged_at", "lost_at"])
    .where("id", "=", raw_mail_id)
    .executeTakeFirst();
  if (raw?.purged_at !== null) throw purged();
  if (raw.lost_at !== null) throw contentLost();
  return raw.size;
}

async function readFiles(app: App, message_id: string): Promise<IncomingFile[]> {
  const rows = await app.db
    .selectFrom("attachments")
    .selectAll()
    .where("message_id", "=", message_id)
    .where("direction", "=", "in")
    .orderBy("id")
    .execute();
  const files: IncomingFile[] = [];
  for (const row of rows) {
    const bytes = await readBytes(app, "attachments", row);
    if (!bytes) throw purged();
    files.push({ filename: row.filename, content_type: row.content_type, bytes });
  }
  return files;
}

/** The error for a message whose content was deleted when its time was over. */
export function purged(): AppError {
  return conflict({
    message: "What this message was about has been deleted, as it is kept for a limited time only.",
    fix: "Send it again.",
  });
}

interface Words {
  message: string;
  fix: string;
}

function conflict({ message, fix }: Words): AppError {
  return new AppError("conflict", message, { fix });
}
