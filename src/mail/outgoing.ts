import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { OutgoingMailRow, ReplyStatus } from "../db/schema.ts";
import { eraseLater } from "../jobs/erase.ts";
import { finishJob, type Job, postponeJob, enqueue } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { base32Token, equalBytes } from "../lib/secrets.ts";
import type { SendOutcome } from "./send.ts";

const CODE_CHARS = 8;
const MAX_RESPONSE_CHARS = 500;

/** `<uuid.code@domain>` without the angle brackets: the code lets us know our own ids again (decision L.5b). */
export function newMessageId(app: App, outgoing_id: string, domain: string): string {
  return `${outgoing_id}.${codeOf(app, outgoing_id)}@${domain}`;
}

export function isOwnMessageId(app: App, id: string): boolean {
  const form = /^([0-9a-f-]{36})\.([a-z2-7]{8})@/.exec(id);
  return form !== null && equalBytes(form[2] ?? "", codeOf(app, form[1] ?? ""));
}

export interface QueuedMail {
  id: string;
  user_id: string;
  message_id: string | null;
  kind: "reply" | "notice";
  envelope_from: string;
  envelope_to: string;
  rfc_message_id: string;
  /** Signed: what every attempt sends, byte for byte. */
  raw: Buffer;
  /** What is told to webhooks once the first attempt has been made. */
  event_id?: string | null;
  /** Whether its bytes are deleted as soon as they have been handed over. */
  private?: boolean;
}

/** Queues a mail in the caller's transaction. In `capture` mode the queue is the capture box, and it is there. */
export async function sendLater(app: App, tx: Db, mail: QueuedMail): Promise<ReplyStatus> {
  const captured = app.config.outbound.mode === "capture";
  const status = captured ? "sent" : "queued";
  const row: OutgoingMailRow = {
    ...mail,
    private: mail.private === true ? 1 : 0,
    event_id: mail.event_id ?? null,
    status,
    attempts: 0,
    response: captured ? "kept in the capture box" : null,
    created: app.now(),
    completed: captured ? app.now() : null,
  };
  await tx.insertInto("outgoing_mails").values(row).execute();
  if (captured) await tellEvent(app, tx, row);
  else await enqueue(app, tx, { kind: "send_mail", payload: { outgoing_id: mail.id } });
  return status;
}

/** Makes one attempt to hand a queued mail over, and records what came of it. */
export async function sendNow(app: App, job: Job<"send_mail">, signal: AbortSignal): Promise<void> {
  const mail = await app.db
    .selectFrom("outgoing_mails")
    .selectAll()
    .where("id", "=", job.payload.outgoing_id)
    .executeTakeFirst();
  if (!mail?.raw || mail.completed !== null) {
    await app.write((tx) => finishJob(tx, job));
    return;
  }
  const outcome = await app.sender.send({
    raw: Buffer.from(mail.raw),
    envelope_from: mail.envelope_from,
    envelope_to: mail.envelope_to,
  });
  const retry_seconds = app.config.outbound.retry[job.failures];
  await writeOutcome(app, signal, async (tx) => {
    if (outcome.status === "deferred" && retry_seconds !== undefined) {
      await postponeJob(tx, job, { run_at: app.now() + retry_seconds, error: outcome.response });
      await record(app, tx, mail, { status: "deferred", response: outcome.response });
      return;
    }
    await finishJob(tx, job);
    await record(app, tx, mail, finalOf(outcome));
  });
  if (outcome.status !== "sent")
    app.log.warn(
      { outgoing_id: mail.id, to: mail.envelope_to, response: outcome.response },
      "mail not handed over",
    );
}

/** The queue has given up on a mail because of a fault of ours. */
export async function giveUpSending(app: App, tx: Db, job: Job<"send_mail">): Promise<void> {
  const mail = await tx
    .selectFrom("outgoing_mails")
    .selectAll()
    .where("id", "=", job.payload.outgoing_id)
    .executeTakeFirst();
  const response = "The mail could not be sent because of a fault of this server; its log says more.";
  if (mail) await record(app, tx, mail, { status: "bounced", response });
}

/** Writes the state of an outgoing mail, on it and on the message it answers. */
export async function record(
  app: App,
  tx: Db,
  mail: Pick<OutgoingMailRow, "id" | "message_id" | "event_id" | "attempts">,
  result: { status: "sent" | "deferred" | "bounced"; response: string },
): Promise<void> {
  const response = result.response.slice(0, MAX_RESPONSE_CHARS);
  const completed = result.status === "deferred" ? null : app.now();
  await tx
    .updateTable("outgoing_mails")
    .set((eb) => ({ status: result.status, response, completed, attempts: eb("attempts", "+", 1) }))
    .where("id", "=", mail.id)
    .execute();
  if (completed !== null) await forgetPrivate(app, tx, mail.id);
  if (mail.attempts === 0) await tellEvent(app, tx, mail);
  if (mail.message_id === null) return;
  const reply_error = result.status === "sent" ? null : response;
  await tx
    .updateTable("messages")
    .set({ reply_status: result.status, reply_error })
    .where("id", "=", mail.message_id)
    .execute();
}

/** What waited for the first attempt goes out now. */
async function tellEvent(app: App, tx: Db, { event_id }: Pick<OutgoingMailRow, "event_id">): Promise<void> {
  if (event_id !== null) await enqueue(app, tx, { kind: "fan_out_event", payload: { event_id } });
}

async function forgetPrivate(app: App, tx: Db, id: string): Promise<void> {
  const forgotten = await tx
    .updateTable("outgoing_mails")
    .set({ raw: null })
    .where("id", "=", id)
    .where("private", "=", 1)
    .executeTakeFirst();
  if (forgotten.numUpdatedRows > 0n) await eraseLater(app, tx, []);
}

function finalOf(outcome: SendOutcome): { status: "sent" | "bounced"; response: string } {
  if (outcome.status === "sent") return { status: "sent", response: outcome.response };
  if (outcome.status === "failed") return { status: "bounced", response: outcome.response };
  return { status: "bounced", response: `Given up after the last retry: ${outcome.response}` };
}

function codeOf(app: App, outgoing_id: string): string {
  return base32Token(app.secrets.hmac("message-id", outgoing_id), CODE_CHARS);
}
