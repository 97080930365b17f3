import type { App } from "../app.ts";
import { tellOwnerLater } from "../jobs/tell-later.ts";
import { refuseFull } from "../resources/billing/storage.ts";
import { ownConversation, startConversation } from "../resources/conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import { insertRow } from "../db/prepared.ts";
import type { Authority, InboxRow, MessageRow, UserRow } from "../db/schema.ts";
import { hasRoom } from "../resources/inboxes/room.ts";
import { isHeld } from "../jobs/holds.ts";
import { isLaneBusy, type Job } from "../jobs/queue.ts";
import { blankMessage } from "../resources/messages/blank-message.ts";
import { firstTry } from "../resources/messages/may-retry.ts";
import { recordState } from "../resources/messages/events.ts";
import { inheritCalls } from "../resources/messages/inherit-calls.ts";
import type { Metadata } from "../resources/messages/metadata.ts";
import { storedBrought } from "../resources/messages/brought.ts";
import { insertAndReserve, insertEnded, type Owing, tellOfLimit } from "./credit.ts";
import { enqueueRun } from "./enqueue-run.ts";
import { authorityNow } from "./judge-sender.ts";
import { sizeOf } from "../resources/messages/run-use.ts";
import { storeBytes } from "../resources/messages/stored-bytes.ts";
import { storeFiles } from "../resources/messages/stored-files.ts";

/** Characters to which a stored subject is cut. */
const MAX_SUBJECT_CHARS = 500;

/** A mail that passed the policy and may be worked on. */
export interface AcceptedMail {
  inbox: InboxRow;
  user: UserRow;
  source: "email" | "test";
  raw_mail_id: string;
  /** Bytes of the raw mail. */
  size: number;
  sender: string;
  subject: string;
  authority: Authority;
  auth: Record<string, unknown>;
  no_reply_reason: string | null;
  rfc_message_id: string | null;
  body_hash: string;
  dedupe_key: string;
  /** True if the same mail has been worked on before, and that failed. */
  failed_before: boolean;
  /** Whether it is vouched for; see `readingFor`. */
  vouched: boolean;
  hop: number;
  /** The thread it continues; null begins a new one. */
  conversation_id: string | null;
  /** The request for consent to whose letter's address it came. */
  approval_id?: string | null;
  /** The API key that sends it as a test; null for a mail. */
  key_id: string | null;
  /** Words of the recipient's `+tag`. */
  tags: string[];
  /** True if a slot of the worker is held for it; see `JobWorker.reserve`. */
  slot: boolean;
  /** Why it is not worked on, although it is kept so that its owner can have that done (decision L.5d). */
  over_cap?: string | null;
}

export interface IncomingFile {
  filename: string;
  content_type: string;
  bytes: Uint8Array;
}

/** An instruction that came over HTTP. */
export interface AcceptedCall {
  inbox: InboxRow;
  user: UserRow;
  source: "api" | "test";
  subject: string;
  instruction: string;
  content: string | null;
  conversation_id: string | null;
  files: IncomingFile[];
  /** The API key that it came with; null from a browser that is signed in. */
  key_id: string | null;
  /** Metadata that the caller attached. */
  metadata?: Metadata;
  /** True if a slot of the worker is held for it; see `JobWorker.reserve`. */
  slot: boolean;
}

/** Data of an accepted call that the run which begins at once need not read again. */
export interface FreshCall {
  message: MessageRow;
  content: string | null;
  files: IncomingFile[];
  /** Whether it begins its conversation. */
  begins: boolean;
}

/** A failed message to retry, and its material that is not part of its raw mail. */
export interface AcceptedRetry {
  /** With the key of whoever wants the retry. */
  failed: MessageRow;
  inbox: InboxRow;
  user: UserRow;
  content: string | null;
  files: IncomingFile[];
  /** Bytes of its raw mail; 0 for a call. */
  raw_size: number;
}

/**
 * Stores a mail, the credit reserved for it or still owed, and its job: this is what `250` promises. If the account is over its
 * credit cap, or the inbox is beyond the plan, the message ends as `limited` at once, and the owner is told once a day.
 */
export async function acceptMail(
  app: App,
  tx: Db,
  mail: AcceptedMail,
): Promise<{ row: MessageRow; job: Job | null }> {
  const { inbox } = mail;
  const subject = mail.subject.slice(0, MAX_SUBJECT_CHARS);
  const conversation_id = mail.conversation_id ?? (await startConversation(app, tx, { inbox, subject }));
  const row: MessageRow = {
    ...blankMessage(app, mail.inbox),
    source: mail.source,
    conversation_id,
    approval_id: mail.approval_id ?? null,
    key_id: mail.key_id,
    authority: mail.authority,
    sender: mail.sender,
    subject,
    auth: JSON.stringify(mail.auth),
    no_reply_reason: mail.no_reply_reason,
    raw_mail_id: mail.raw_mail_id,
    rfc_message_id: mail.rfc_message_id,
    body_hash: mail.body_hash,
    dedupe_key: mail.dedupe_key,
    vouched: mail.vouched ? 1 : 0,
    hop: mail.hop,
    tags: JSON.stringify(mail.tags),
  };
  if (typeof mail.over_cap === "string") {
    await insertEnded(app, tx, row, { state: "skipped", reason: "loop_cap", error: mail.over_cap });
    // A letter a day, from an address that takes no mail, cannot become part of a loop, whoever answers it.
    await tellOwnerLater(app, tx, { user_id: row.user_id, kind: "mail_left_out", message_id: row.id });
    return { row, job: null };
  }
  const owes = await insertWithinPlan(app, tx, mail, row);
  if (row.state === "limited") {
    if (row.source === "email") await tellOfLimit(app, tx, row);
    return { row, job: null };
  }
  if (mail.failed_before) await inheritCalls(tx, row);
  const waits = inbox.paused !== null;
  const claimed = mail.slot && !waits && !owes && (await mayBegin(tx, conversation_id));
  const job = await enqueueRun(app, tx, { row, user: mail.user, claimed, bytes: mail.size, waits, owes });
  return { row, job: claimed ? job : null };
}

const NO_ROOM = "This inbox is one more than its account may have, so the mail was not worked on.";

/** As `insertAndReserve`, where the plan has room for the inbox. */
async function insertWithinPlan(
  app: App,
  tx: Db,
  { user, inbox }: AcceptedMail,
  row: MessageRow,
): Promise<Owing> {
  if (await hasRoom(app, tx, user, inbox)) return insertAndReserve(app, tx, row);
  await insertEnded(app, tx, row, { state: "limited", reason: "plan_limit", error: NO_ROOM });
  return undefined;
}

/**
 * Stores a call over HTTP, the credit reserved for it, and its job, which is claimed if the held slot could be used.
 * Throws `storage_full` when the account has no room for the call.
 */
export async function acceptCall(
  app: App,
  tx: Db,
  call: AcceptedCall,
): Promise<{ row: MessageRow; job: Job | null }> {
  app.refuseIntake();
  const bytes = sizeOf(call);
  const metadata = JSON.stringify(call.metadata ?? {});
  await refuseFull(app, tx, call.user, bytes + Buffer.byteLength(call.instruction + metadata));
  const subject = call.subject.slice(0, MAX_SUBJECT_CHARS);
  const conversation_id =
    call.conversation_id === null
      ? await startConversation(app, tx, { inbox: call.inbox, subject })
      : await ownConversation(tx, call.user, { id: call.conversation_id, inbox_id: call.inbox.id });
  const row: MessageRow = {
    ...blankMessage(app, call.inbox),
    source: call.source,
    conversation_id,
    authority: "owner",
    key_id: call.key_id,
    subject,
    instruction: call.instruction,
    metadata,
    brought: storedBrought(call),
  };
  await insertAndReserve(app, tx, row);
  if (row.state === "limited") return { row, job: null };
  await storeMaterial(app, tx, row, call);
  const begins = call.conversation_id === null;
  const claimed = call.slot && (await mayBegin(tx, begins ? null : conversation_id));
  const job = await enqueueRun(app, tx, { row, user: call.user, claimed, bytes, material: call });
  if (!claimed || job === null) return { row, job: null };
  const { content, files } = call;
  job.fresh = { message: row, content, files, begins } satisfies FreshCall;
  return { row, job };
}

/** The columns that say what a message is to be done with: another run of it has the same. */
export async function sameAs(
  app: App,
  tx: Db,
  { message, inbox, user }: { message: MessageRow; inbox: InboxRow; user: UserRow },
) {
  return {
    ...blankMessage(app, inbox),
    source: message.source,
    authority: await authorityNow(tx, { inbox, user }, message),
    sender: message.sender,
    subject: message.subject,
    instruction: message.instruction,
    auth: message.auth,
    no_reply_reason: message.no_reply_reason,
    raw_mail_id: message.raw_mail_id,
    rfc_message_id: message.rfc_message_id,
    vouched: message.vouched,
    hop: message.hop,
    tags: message.tags,
    metadata: message.metadata,
    schedule_id: message.schedule_id,
    approval_id: message.approval_id,
    key_id: message.key_id,
    from_memory: message.from_memory,
  };
}

/** Stores a message that does the work of a failed one again, with a credit reserved and a job of its own. */
export async function acceptRetry(app: App, tx: Db, retry: AcceptedRetry): Promise<MessageRow> {
  app.refuseIntake();
  const { failed, inbox, user } = retry;
  await refuseFull(app, tx, user, sizeOf(retry));
  const row: MessageRow = {
    ...(await sameAs(app, tx, { message: failed, inbox, user })),
    conversation_id: failed.conversation_id,
    // The key of the mail moves to the retry: the sender's server may send the same mail once more, and so may anybody
    // who has it.
    dedupe_key: failed.dedupe_key,
    retry_of: firstTry(failed),
    brought: storedBrought(retry),
  };
  const owes = await insertAndReserve(app, tx, row);
  if (row.state === "limited") return row;
  await inheritCalls(tx, row);
  await storeMaterial(app, tx, row, retry);
  const bytes = retry.raw_size + sizeOf(retry);
  await enqueueRun(app, tx, { row, user, claimed: false, bytes, material: retry, owes });
  return row;
}

/** Stores the row of a mail that was not worked on, for the activity log; the text of the mail is not kept. */
export async function logRefusedMail(
  app: App,
  tx: Db,
  refused: Pick<
    MessageRow,
    "state" | "reason" | "error" | "sender" | "subject" | "rfc_message_id" | "auth"
  > & {
    inbox: InboxRow;
    authority: Authority;
  } & Partial<Pick<MessageRow, "body_hash" | "dedupe_key" | "vouched">>,
): Promise<MessageRow> {
  const { inbox, subject, ...rest } = refused;
  const row: MessageRow = {
    ...blankMessage(app, inbox),
    ...rest,
    source: "email",
    subject: subject?.slice(0, MAX_SUBJECT_CHARS) ?? null,
    completed: app.now(),
    duration_ms: 0,
  };
  await insertRow(tx, "messages", row);
  await recordState(app, tx, row);
  return row;
}

/** Stores a raw mail, and returns the id of its row. */
export async function storeRawMail(app: App, tx: Db, raw: Buffer): Promise<string> {
  app.refuseIntake();
  const id = app.newId();
  const row = { id, size: raw.byteLength, ...storeBytes(app, id, raw), created: app.now(), purged_at: null };
  await insertRow(tx, "raw_mails", row);
  return id;
}

/** Stores the untrusted parts of a call: its content and files. The row of the message is stored elsewhere. */
export async function storeMaterial(
  app: App,
  tx: Db,
  row: MessageRow,
  { content, files }: { content: string | null; files: IncomingFile[] },
): Promise<void> {
  if (content !== null)
    await insertRow(tx, "message_contents", { message_id: row.id, content, purged_at: null });
  await storeFiles(app, tx, { message_id: row.id, direction: "in", files });
}

/** Returns whether a message would start at once; a conversation of null has no other message. */
async function mayBegin(tx: Db, conversation_id: string | null): Promise<boolean> {
  const waits = conversation_id !== null && (await isLaneBusy(tx, conversation_id));
  return !waits && !(await isHeld(tx, "route_message"));
}
