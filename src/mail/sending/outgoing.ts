import type { App } from "../../app.ts";
import { apart, type Db } from "../../db/database.ts";
import { orphanMails } from "../../db/orphans.ts";
import type { MailKind, OutgoingMailRow, ReplyStatus } from "../../db/schema.ts";
import { buryJob, enqueue, finishJob, type Job, nameOf, postponeJob, returnJob } from "../../jobs/queue.ts";
import { writeOutcome } from "../../jobs/run-job.ts";
import { millisecondsOf } from "../../lib/first-id.ts";
import { addLogField } from "../../lib/log.ts";
import { domainOf } from "../../net/domain-owner.ts";
import { bounceAddress } from "../writing/own-ids.ts";
import { authorOf, isReadable } from "../writing/readdress.ts";
import { tellOfReturnLater } from "./returns.ts";
import { settleForwardLater } from "./forwards.ts";
import { believed } from "./doubts.ts";
import { sendUse } from "./send-use.ts";
import { KEPT_HERE, type OutgoingMail, type SendOutcome } from "./send.ts";
import { MAX_RESPONSE_CHARS, recordSending, type Result, showOnMessage, tellEvent } from "./sent-state.ts";
import { type Suppressed, suppressionOf } from "./suppressions.ts";

/** How many mails without a job one transaction ends. */
const ORPHANS_AT_ONCE = 100;

export interface QueuedMail {
  id: string;
  user_id: string;
  message_id: string | null;
  kind: MailKind;
  envelope_from: string;
  envelope_to: string;
  rfc_message_id: string;
  /** The signed mail that every attempt sends, byte for byte. */
  raw: Buffer;
  /** The event that is announced to webhooks after the first attempt. */
  event_id?: string | null;
  /** Whether its bytes are deleted as soon as they have been handed over. */
  private?: boolean;
  /** Whether somebody was told that its content has been accepted. */
  entrusted?: boolean;
}

/** `entrusted` is as in the job. */
export type Carrying = Pick<Job<"send_mail">["payload"], "entrusted">;

/** Queues a mail in the caller's transaction. In `capture` mode it goes to the capture box and is done. */
export async function sendLater(app: App, tx: Db, mail: QueuedMail): Promise<ReplyStatus> {
  const suppressed = await suppressionOf(app, tx, mail);
  if (suppressed !== undefined) return keepBack(app, tx, mail, suppressed);
  const captured = app.config.outbound.mode === "capture";
  const status = captured ? "sent" : "queued";
  const row = {
    ...newRow(app, mail),
    status,
    response: captured ? KEPT_HERE : null,
    completed: captured ? app.now() : null,
  } satisfies OutgoingMailRow;
  await tx.insertInto("outgoing_mails").values(row).execute();
  if (captured) {
    await tellEvent(app, tx, row);
    if (mail.kind === "forward") await settleForwardLater(app, tx, mail);
  } else {
    const use = await sendUse(tx, mail);
    const carrying = mail.entrusted === true ? { entrusted: true } : {};
    await enqueue(app, tx, { kind: "send_mail", payload: { outgoing_id: mail.id, ...carrying }, ...use });
  }
  return status;
}

/** Stores a mail that is not sent, and why. */
async function keepBack(app: App, tx: Db, mail: QueuedMail, kept: Suppressed): Promise<ReplyStatus> {
  const response = kept.why.slice(0, MAX_RESPONSE_CHARS);
  const row = {
    ...newRow(app, mail),
    status: "suppressed",
    response,
    completed: app.now(),
  } satisfies OutgoingMailRow;
  await tx.insertInto("outgoing_mails").values(row).execute();
  await tellEvent(app, tx, row);
  await showOnMessage(app, tx, mail, { reply_status: "suppressed", reply_error: response });
  if (isOwed(mail, kept)) await tellOfReturnLater(app, tx, mail);
  return "suppressed";
}

/** Whether nobody else would tell of a mail that is kept back. */
function isOwed({ kind }: Pick<QueuedMail, "kind">, { of_owner }: Suppressed): boolean {
  return kind === "notice" || of_owner;
}

function newRow(app: App, mail: QueuedMail) {
  return {
    ...mail,
    private: mail.private === true ? 1 : 0,
    entrusted: mail.entrusted === true ? 1 : 0,
    event_id: mail.event_id ?? null,
    attempts: 0,
    created: app.now(),
  };
}

/** A mail whose bytes are still there. */
export type WaitingMail = Omit<OutgoingMailRow, "raw"> & { raw: Buffer };

/** The review of a mail just before an attempt. */
export interface AtSending {
  /** Why it must not be sent any more. */
  why?: string | undefined;
  /** Why it has to wait until there is somebody to send it to. */
  not_yet?: string;
  /** New values of the mail, if any. */
  changed?: Partial<Pick<WaitingMail, "raw" | "envelope_from" | "envelope_to" | "user_id">>;
  /** Further writes in the same transaction, before these. */
  alongside?: (tx: Db) => Promise<void>;
}

type Review = (app: App, mail: WaitingMail, carrying: Carrying) => Promise<AtSending>;

/** Makes one attempt to hand over a queued mail, after its review, and records the outcome. */
export async function sendNow(
  app: App,
  job: Job<"send_mail">,
  { signal, review }: { signal: AbortSignal; review: Review },
): Promise<void> {
  const mail = await app.db
    .selectFrom("outgoing_mails")
    .selectAll()
    .where("id", "=", job.payload.outgoing_id)
    .executeTakeFirst();
  if (!mail?.raw || mail.completed !== null) {
    await app.write(async (tx) => {
      if (mail) return finishJob(tx, job);
      app.log.error(NOT_FOUND);
      await buryJob(app, tx, job, NOT_FOUND);
      await endOrphanMails(app, tx, job);
    });
    return;
  }
  if (mail.message_id !== null) addLogField("message_id", mail.message_id);
  const began = performance.now();
  let refusal: Error | undefined;
  const onBegin = (): void => {
    refusal = app.lockGone();
    // A new error, because the library may set a code on it.
    if (refusal) throw new Error("it must not be given to anybody now");
    app.worker?.waitForWord(job);
  };
  const { buffer, byteOffset, byteLength } = mail.raw;
  const waiting = { ...mail, raw: Buffer.from(buffer, byteOffset, byteLength) };
  if (!isReadable(waiting.raw)) return endUnreadable(app, job, signal, mail);
  const now = await reviewed(app, waiting, { job, signal, review });
  const sent = { ...waiting, ...now.changed };
  const made = await attempt(app, { ...sent, share: job.share }, { ...now, onBegin });
  if (refusal) throw refusal;
  const outcome = believed(made, { mail, failures: job.failures, retry: app.config.outbound.retry });
  if (outcome.status === "crowded") return waitForRoom(app, job, signal, outcome);
  measure(app, mail, { outcome, seconds: (performance.now() - began) / 1_000 });
  noteRelay(app, outcome);
  const retry_seconds = app.config.outbound.retry[job.failures];
  await writeOutcome(app, signal, async (tx) => {
    if (outcome.status === "deferred" && retry_seconds !== undefined) {
      await postponeJob(tx, job, { run_at: app.after(retry_seconds), error: outcome.response });
      await recordSending(app, tx, mail, { status: "deferred", response: outcome.response });
      return;
    }
    const result = finalOf(outcome);
    // If the relay refuses all mail, this one is kept to be sent once that is fixed.
    const waits = job.payload.entrusted === true || isOfRelay(outcome);
    const is_owed = waits && result.status === "bounced";
    await (is_owed ? buryJob(app, tx, job, result.response) : finishJob(tx, job));
    await recordSending(app, tx, mail, is_owed ? { ...result, is_owed } : result);
    if (now.why !== undefined) await now.alongside?.(tx);
  });
  const ms = Math.round(performance.now() - began);
  const said = { outgoing_id: mail.id, to: sent.envelope_to, response: outcome.response, ms };
  if (outcome.status === "sent") app.log.info(said, "mail handed over");
  else app.log[isOurMatter(app, outcome) ? "warn" : "info"](said, "mail not handed over");
}

function isOfRelay(outcome: Outcome): boolean {
  return outcome.status === "deferred" && outcome.of_relay === true;
}

/** Remembers why the relay accepts nothing, until it accepts a mail or refuses a single one. */
function noteRelay({ relay, now }: App, outcome: Outcome): void {
  if (outcome.status === "suppressed") return;
  relay.trouble = isOfRelay(outcome)
    ? { since: relay.trouble?.since ?? now(), response: outcome.response }
    : null;
}

/** Returns whether the operator can fix it: the relay does not work, or others distrust this server. */
function isOurMatter(app: App, outcome: Outcome): boolean {
  if (outcome.status === "failed") return outcome.enhanced?.startsWith("5.7.") === true;
  if (outcome.status !== "deferred" || app.config.outbound.mode !== "relay") return false;
  const { code = 0 } = outcome;
  return code < 400 || code >= 500;
}

/** Ends a mail of which nothing can be sent: no further try would help. Its job is kept for the operator. */
async function endUnreadable(
  app: App,
  job: Job<"send_mail">,
  signal: AbortSignal,
  mail: OutgoingMailRow,
): Promise<void> {
  app.log.error({ outgoing_id: mail.id }, UNREADABLE);
  await writeOutcome(app, signal, async (tx) => {
    await buryJob(app, tx, job, UNREADABLE);
    await recordSending(app, tx, mail, { status: "bounced", response: UNREADABLE, is_owed: true });
  });
}

const UNREADABLE = "The mail could not be sent: what this server has stored of it is damaged.";

async function waitForRoom(
  app: App,
  job: Job,
  signal: AbortSignal,
  { room, response: error }: { room: Promise<void>; response: string },
): Promise<void> {
  // Called before the job can be claimed again.
  app.worker?.waitForRoom(job, room);
  await writeOutcome(app, signal, (tx) => returnJob(tx, job, { error }));
}

function measure(
  app: App,
  { message_id, kind }: OutgoingMailRow,
  { outcome, seconds }: { outcome: Outcome; seconds: number },
): void {
  const { status } = outcome;
  const shown = status === "failed" ? "bounced" : status;
  app.metrics.time("mailwright_send_seconds", { outcome: shown }, seconds);
  if (status !== "sent" || message_id === null || kind === "forward") return;
  const since_accepted = Math.max(0, app.nowMs() - millisecondsOf(message_id)) / 1_000;
  app.metrics.time("mailwright_reply_seconds", {}, since_accepted);
}

type Outcome = Exclude<SendOutcome, { status: "crowded" }> | { status: "suppressed"; response: string };

/** Stores the changes of a mail before the attempt, because its recipient may reply to what is in it. */
async function reviewed(
  app: App,
  mail: WaitingMail,
  { job, signal, review }: { job: Job<"send_mail">; signal: AbortSignal; review: Review },
): Promise<AtSending> {
  const kept = await suppressionOf(app, app.db, mail);
  if (kept !== undefined)
    return {
      why: kept.why,
      ...(isOwed(mail, kept) && { alongside: (tx) => tellOfReturnLater(app, tx, mail) }),
    };
  const now = await review(app, mail, job.payload);
  const { changed, alongside } = now;
  if (changed)
    await writeOutcome(app, signal, async (tx) => {
      await alongside?.(tx);
      await tx.updateTable("outgoing_mails").set(changed).where("id", "=", mail.id).execute();
    });
  return now;
}

async function attempt(
  app: App,
  { id, raw, envelope_from, envelope_to, share }: OutgoingMail & { id: string },
  { why, not_yet, onBegin }: Pick<AtSending, "why" | "not_yet"> & { onBegin: () => void },
): Promise<SendOutcome | Outcome> {
  if (why !== undefined) return { status: "suppressed", response: why };
  if (not_yet !== undefined) return { status: "deferred", response: not_yet };
  const outcome = await app.sender.send({ raw, envelope_from, envelope_to, share }, onBegin);
  if (outcome.status !== "failed" || outcome.no_null_sender !== true) return outcome;
  // An address that causes no reply, so a bounce of the notice has no effect.
  const returns_to = bounceAddress(app, id, domainOf(authorOf(raw)));
  return app.sender.send({ raw, envelope_from: returns_to, envelope_to, share }, onBegin);
}

/** Erasing takes the jobs of what it erases away as well. */
const NOT_FOUND = "The mail that it is for cannot be found: the database may be damaged";

const FAULT: Result = {
  status: "bounced",
  response: "The mail could not be sent because of a fault of this server; its log says more.",
};

/** Ends a mail that the queue gave up because of a fault of ours; its job is kept. */
export async function giveUpSending(app: App, tx: Db, { payload }: Job<"send_mail">): Promise<void> {
  const mail = await waitingMail(tx, payload.outgoing_id);
  if (mail) await recordSending(app, tx, mail, { ...FAULT, is_owed: true });
}

/** Ends a mail that the operator dropped from the queue, with the reason. */
export async function dropSending(
  app: App,
  tx: Db,
  job: Pick<Job<"send_mail">, "payload" | "share">,
  reason: string,
): Promise<void> {
  const result: Result = { status: "suppressed", response: reason };
  const mail = await waitingMail(tx, job.payload.outgoing_id);
  if (mail) await recordSending(app, tx, mail, result);
  else await endOrphanMails(app, tx, job, result);
}

/** Ends unsent mails of an account that have no job, which happens only in a damaged database. */
export async function endOrphanMails(
  app: App,
  tx: Db,
  { share }: Pick<Job, "share">,
  result: Result = FAULT,
): Promise<void> {
  if (share === null) return;
  for (const id of await orphanMails(tx, nameOf(share.account), ORPHANS_AT_ONCE)) {
    const fault = await apart(tx, async () => {
      const mail = await waitingMail(tx, id);
      if (mail) await recordSending(app, tx, mail, result);
    });
    app.log.error({ outgoing_id: id, err: fault }, "no job was for a mail that was to be sent");
  }
}

/** Queues a mail again that was given up. Returns false when there is nothing left to send. */
export async function sendAgain(app: App, tx: Db, payload: Job<"send_mail">["payload"]): Promise<boolean> {
  const mail = await tx
    .selectFrom("outgoing_mails")
    .selectAll()
    .where("id", "=", payload.outgoing_id)
    .executeTakeFirst();
  if (!mail?.raw || mail.status === "sent") return false;
  const queued = { status: "queued", response: null, completed: null } as const;
  await tx.updateTable("outgoing_mails").set(queued).where("id", "=", mail.id).execute();
  await showOnMessage(app, tx, mail, { reply_status: "queued", reply_error: null });
  const use = await sendUse(tx, { ...mail, raw: mail.raw });
  await enqueue(app, tx, { kind: "send_mail", payload, ...use });
  return true;
}

function waitingMail(tx: Db, id: string): Promise<OutgoingMailRow | undefined> {
  const mail = tx.selectFrom("outgoing_mails").selectAll().where("id", "=", id);
  return mail.where("completed", "is", null).executeTakeFirst();
}

function finalOf(outcome: Outcome): Result {
  if (outcome.status === "sent" || outcome.status === "suppressed")
    return { status: outcome.status, response: outcome.response };
  if (outcome.status === "failed") return { ...outcome, status: "bounced" };
  return { ...outcome, status: "bounced", response: `Given up after the last retry: ${outcome.response}` };
}
