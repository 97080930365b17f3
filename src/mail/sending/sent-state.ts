import type { App } from "../../app.ts";
import { afterCommit, type Db } from "../../db/database.ts";
import { eventKey } from "../../db/job-keys.ts";
import { packed } from "../../db/packed-row.ts";
import type { MessageRow, OutgoingMailRow } from "../../db/schema.ts";
import { userById } from "../../db/users.ts";
import { eraseLater } from "../../jobs/erase.ts";
import { buryJob, enqueue } from "../../jobs/queue.ts";
import { mayBeDelayed } from "./delays.ts";
import { settleForwardLater } from "./forwards.ts";
import { settleLostLater } from "./lost-answers.ts";
import { tellOfLostLetter, tellOfReturnLater } from "./returns.ts";
import { sendUse } from "./send-use.ts";
import { countReturn, liftOfOwner, type Return } from "./suppressions.ts";

export const MAX_RESPONSE_CHARS = 500;

export type Result = Return & {
  status: "sent" | "deferred" | "bounced" | "suppressed";
  /** As in `SendOutcome`: the problem is the relay's, not the recipient's. */
  of_relay?: true;
  /** As in `SendOutcome`: our own name server says so, which is no return of the address. */
  of_lookup?: true;
  /** Whether its job is kept for the operator, who can send it again. */
  is_owed?: true;
};

/** Stores the state of an outgoing mail, on it and on the message it answers. */
export async function recordSending(
  app: App,
  tx: Db,
  mail: Omit<OutgoingMailRow, "raw">,
  result: Result,
): Promise<void> {
  const response = result.response.slice(0, MAX_RESPONSE_CHARS);
  const completed = result.status === "deferred" ? null : app.now();
  const { numUpdatedRows } = await tx
    .updateTable("outgoing_mails")
    .set((eb) => ({ status: result.status, response, completed, attempts: eb("attempts", "+", 1) }))
    .where("id", "=", mail.id)
    .where("completed", "is", null)
    .executeTakeFirst();
  // A bounce may arrive before the acceptance by the server has been stored.
  if (numUpdatedRows === 0n) return;
  // What did not arrive is kept as any other mail is, so that it can be sent again: nothing else has its words.
  if (result.status === "sent") await forgetPrivate(app, tx, mail.id);
  if (mail.attempts === 0) await tellEvent(app, tx, mail);
  const reply_error = result.status === "sent" ? null : response;
  await showOnMessage(app, tx, mail, { reply_status: result.status, reply_error });
  if (result.status === "sent" && mail.message_id !== null) await liftOfOwner(tx, mail);
  if (result.status === "bounced") await noteReturn(app, tx, mail, { ...result, response });
}

async function noteReturn(
  app: App,
  tx: Db,
  mail: Omit<OutgoingMailRow, "raw">,
  result: Result,
): Promise<void> {
  await tellOfLostLetter(app, tx, mail);
  if (mail.message_id === null) return;
  if (result.of_relay !== true && result.of_lookup !== true) await countReturn(app, tx, mail, result);
  // The operator can have it sent once the relay works; until then a letter to the same address would not leave either.
  if (result.is_owed === true && (await isToOwner(tx, mail))) return;
  await tellOfReturnLater(app, tx, mail);
}

async function isToOwner(
  tx: Db,
  { user_id, envelope_to }: Pick<OutgoingMailRow, "user_id" | "envelope_to">,
): Promise<boolean> {
  const [user] = await userById(tx, { id: user_id });
  return user?.email === envelope_to.toLowerCase();
}

/** A mail that has been handed over. */
export type HandedMail = Omit<OutgoingMailRow, "raw" | "response" | "created" | "private" | "envelope_from">;

/**
 * Stores what a delivery report says about a mail that was handed over. `certain`: only the server that got the mail
 * can have written it.
 */
export async function recordReport(
  app: App,
  tx: Db,
  mail: HandedMail,
  report: Return & { status: "sent" | "deferred" | "bounced"; certain: boolean },
): Promise<void> {
  if (!isNews(app, mail, report.status)) return;
  const { status, response } = report;
  await tx
    .updateTable("outgoing_mails")
    .set({ status, response, completed: mail.completed ?? app.now() })
    .where("id", "=", mail.id)
    .execute();
  if (mail.completed === null && status === "sent") await forgetPrivate(app, tx, mail.id);
  if (mail.attempts === 0 && mail.completed === null) await tellEvent(app, tx, mail);
  await showOnMessage(app, tx, mail, {
    reply_status: status,
    reply_error: status === "sent" ? null : response,
  });
  if (status !== "bounced") return;
  if (mail.entrusted === 1) await keepForOperator(app, tx, mail, response);
  await tellOfLostLetter(app, tx, mail);
  if (mail.message_id === null) return;
  if (report.certain) await countReturn(app, tx, mail, report);
  await tellOfReturnLater(app, tx, mail);
}

/** Keeps a letter that came back as a job that was given up, which the operator can have done again. */
export async function keepForOperator(
  app: App,
  tx: Db,
  { id, user_id, message_id, envelope_to, entrusted }: Omit<HandedMail, "rfc_message_id" | "event_id">,
  response: string,
): Promise<void> {
  const mail = tx.selectFrom("outgoing_mails").select("raw").where("id", "=", id);
  const { raw } = await mail.executeTakeFirstOrThrow();
  if (!raw) return;
  const job = await enqueue(app, tx, {
    kind: "send_mail",
    payload: { outgoing_id: id, ...(entrusted === 1 ? { entrusted: true } : {}) },
    claimed: true,
    ...(await sendUse(tx, { user_id, message_id, envelope_to, raw })),
  });
  if (job) await buryJob(app, tx, job, response);
}

/**
 * Returns whether a report is news: not about a mail that has bounced, nor about one that waits here for its next
 * attempt.
 */
function isNews(app: App, { status: before, completed }: HandedMail, status: HandedMail["status"]): boolean {
  if (before === "bounced" || before === status) return false;
  if (status === "deferred") return completed !== null && mayBeDelayed(app, completed);
  return status === "bounced" || completed !== null;
}

const LOST: ReadonlySet<string> = new Set(["bounced", "suppressed"]);

export async function showOnMessage(
  app: App,
  tx: Db,
  mail: Pick<OutgoingMailRow, "id" | "message_id" | "user_id" | "kind">,
  shown: Pick<MessageRow, "reply_status" | "reply_error">,
): Promise<void> {
  const { message_id, user_id } = mail;
  if (message_id === null) return;
  if (mail.kind === "forward") return settleForwardLater(app, tx, mail);
  await tx.updateTable("messages").set(shown).where("id", "=", message_id).execute();
  if (mail.kind === "reply" && LOST.has(shown.reply_status)) await settleLostLater(app, tx, mail);
  afterCommit(tx, () => app.changes.tell(user_id, message_id));
}

/** Sends the event that waited for the first attempt. */
export async function tellEvent(
  app: App,
  tx: Db,
  { event_id }: Pick<OutgoingMailRow, "event_id">,
): Promise<void> {
  if (event_id === null) return;
  await enqueue(app, tx, { kind: "fan_out_event", payload: { event_id }, dedupe_key: eventKey(event_id) });
}

async function forgetPrivate(app: App, tx: Db, id: string): Promise<void> {
  const mail = tx.selectFrom("outgoing_mails").select("id").where("id", "=", id).where("private", "=", 1);
  if (await mail.executeTakeFirst()) await forgetLetterBytes(app, tx, id);
}

/** Deletes the bytes of a mail that was sent; what is known of it stays. */
export async function forgetLetterBytes(app: App, tx: Db, id: string): Promise<void> {
  const { numUpdatedRows } = await tx
    .updateTable("outgoing_mails")
    .set({ raw: null, ...packed("outgoing_mails") })
    .where("id", "=", id)
    .executeTakeFirst();
  if (numUpdatedRows > 0n) await eraseLater(app, tx, []);
}
