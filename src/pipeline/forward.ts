import type { App } from "../app.ts";
import { afterCommit, type Db } from "../db/database.ts";
import { mailsGivenUp } from "../db/orphans.ts";
import type { MessageRow, OutgoingMailRow } from "../db/schema.ts";
import { finishJob, type Job } from "../jobs/queue.ts";
import { writeOutcome } from "../jobs/run-job.ts";
import { tellOwnerLater } from "../jobs/tell-later.ts";
import { storedJson } from "../lib/stored-json.ts";
import { forgetLetterBytes, keepForOperator } from "../mail/sending/sent-state.ts";
import { enclosed, MAX_ENCLOSED_BYTES, prepareLetter } from "../mail/writing/letters.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { isForgotten, LEFT_OUT_BY_RULE } from "../resources/messages/forgotten.ts";
import { type RulesFound, rulesFound } from "../resources/messages/rules-found.ts";
import { asCode } from "../trust/shown/as-code.ts";
import type { Run } from "./close.ts";
import { messageById } from "../resources/messages/messages.ts";
import { readStoredMail } from "./input.ts";
import { forgetContent } from "./private.ts";
import { type Step, type StepDraft, toSteps } from "./steps.ts";

type Forwarded = Pick<Run, "message" | "inbox" | "owner_email" | "owner_verified" | "steps">;

/** What a rule has forwarded, or could not. */
export interface Forward {
  /** False where nothing is sent: the steps say why. */
  is_on_its_way: boolean;
  /** Queues the letter, or has the owner told that there is none, in the transaction that ends the message. */
  queue: (tx: Db) => Promise<void>;
}

/** The step of a message that says what became of its forward. */
const STEP = "forward";

export const HAVE_IT_DONE = "“Work on it now” on its page has it done after all.";

export function notProven(address: string): string {
  return `${address} is not the proven address of this account any more. Save the rule anew, with the address that is.`;
}

export function leftOutBy(rule: string): string {
  return `Your rule “${rule}” left it out.`;
}

/** What is said of a mail that a rule would leave out, and that has not been forwarded. */
export function keptFor(rule: string, is_on_its_way: boolean): string {
  return is_on_its_way
    ? `Your rule “${rule}” left it out. Its content is kept until it has been forwarded.`
    : `Your rule “${rule}” leaves such mail out, but it could not be forwarded, so it is kept; its steps say why. ${HAVE_IT_DONE}`;
}

/**
 * Prepares the letter that takes a whole mail to the owner of its inbox, as a rule asks; the closing transaction queues it. What
 * keeps it from being forwarded is added to the steps.
 */
export async function prepareForward(
  app: App,
  { message, inbox, owner_email, owner_verified, steps }: Forwarded,
  address: string | undefined,
): Promise<Forward | undefined> {
  if (address === undefined) return undefined;
  const { id: message_id, user_id } = message;
  const refuse = (why: string, queue: Forward["queue"]): Forward => {
    steps.push({ ...stepOf(address, { status: "bounced", response: why }), to_strangers: "" });
    return { is_on_its_way: false, queue };
  };
  const tellOwner = (tx: Db) => tellNotForwarded(app, tx, message);
  // Whoever called is there, and reads the steps.
  if (message.raw_mail_id === null) return refuse("It is no mail.", async () => {});
  if (owner_verified !== 1 || owner_email !== address) return refuse(notProven(address), tellOwner);
  if (await wasForwarded(app.db, message, address)) {
    steps.push({ type: "context", name: STEP, output: `It had been forwarded to ${address} before.` });
    return { is_on_its_way: false, queue: async () => {} };
  }
  const { raw } = await readStoredMail(app, message);
  if (raw.byteLength > MAX_ENCLOSED_BYTES)
    return refuse("It is larger than 15 MB, which most mail providers refuse.", tellOwner);
  steps.push({ ...stepOf(address, { status: "queued", response: null }), to_strangers: "" });
  const queue = await prepareLetter(app, {
    user_id,
    forwards: message_id,
    to: address,
    subject: `Fwd: ${message.subject ?? ""}`,
    markdown: [
      `A rule of your inbox ${asCode(inbox.label)} (${asCode(addressOf(inbox))}) forwards this mail.`,
      `From: ${asCode(message.sender ?? "")}`,
      `Subject: ${asCode(message.subject ?? "")}`,
      "The whole mail is attached as message.eml.",
    ].join("\n\n"),
    attachments: [enclosed(Buffer.from(raw))],
  });
  return { is_on_its_way: true, queue };
}

/** Whether an earlier try of a mail has had it forwarded already. */
async function wasForwarded(
  db: Db,
  { raw_mail_id, inbox_id }: MessageRow,
  address: string,
): Promise<boolean> {
  const earlier = await db
    .selectFrom("messages")
    .innerJoin("outgoing_mails", "outgoing_mails.message_id", "messages.id")
    .select("outgoing_mails.id")
    .where("raw_mail_id", "=", raw_mail_id)
    .where("inbox_id", "=", inbox_id)
    .where("outgoing_mails.kind", "=", "forward")
    .where("envelope_to", "=", address)
    .where("outgoing_mails.status", "in", ["queued", "deferred", "sent"])
    .executeTakeFirst();
  return earlier !== undefined;
}

/** Notes the rule that leaves a mail out once it has been forwarded. */
export async function leaveOutOnceForwarded(tx: Db, { id }: MessageRow, rule: string): Promise<void> {
  const message = await tx
    .selectFrom("messages")
    .select("rules")
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  const rules: RulesFound = { ...rulesFound(message), left_out_once_forwarded: rule };
  await tx
    .updateTable("messages")
    .set({ rules: JSON.stringify(rules) })
    .where("id", "=", id)
    .execute();
}

/**
 * Writes on a message what became of its forward. What a rule leaves out is forgotten once it has been handed over, and not
 * before; where that fails, the owner is told.
 */
export async function settleForwardNow(
  app: App,
  job: Job<"settle_forward">,
  signal: AbortSignal,
): Promise<void> {
  await writeOutcome(app, signal, async (tx) => {
    await finishJob(tx, job);
    const mail = await forwardById(tx, job.payload.outgoing_id);
    const [message] = await messageById(tx, { id: mail?.message_id ?? "" });
    if (!mail || !message) return;
    const was_forgotten = isForgotten(message);
    const failed = FAILED.has(mail.status);
    const step = stepOf(mail.envelope_to, mail, was_forgotten);
    const changed = { steps: JSON.stringify(withStep(message, step)), ...leavingOut(message, mail.status) };
    await tx.updateTable("messages").set(changed).where("id", "=", message.id).execute();
    if (changed.reason === LEFT_OUT_BY_RULE) await forgetContent(app, tx, message);
    if (was_forgotten) await (failed ? keepLetter(app, tx, mail) : forgetLetter(app, tx, mail, message));
    if (failed) await tellNotForwarded(app, tx, message);
    afterCommit(tx, () => app.changes.tell(message.user_id, message.id));
  });
}

const FAILED = new Set<OutgoingMailRow["status"]>(["bounced", "suppressed"]);

type Sent = NonNullable<Awaited<ReturnType<typeof forwardById>>>;

function forwardById(tx: Db, id: string) {
  return tx
    .selectFrom("outgoing_mails")
    .select(["id", "user_id", "message_id", "kind", "envelope_to", "status", "response", "attempts"])
    .select(["completed", "entrusted"])
    .where("id", "=", id)
    .executeTakeFirst();
}

/** What changes of a message that a rule leaves out once it has been forwarded; nothing of any other. */
function leavingOut(message: MessageRow, status: OutgoingMailRow["status"]): Partial<MessageRow> {
  const { left_out_once_forwarded: rule, ...rules } = rulesFound(message);
  if (rule === undefined) return {};
  return status === "sent"
    ? { reason: LEFT_OUT_BY_RULE, error: leftOutBy(rule), rules: JSON.stringify(rules) }
    : { error: keptFor(rule, !FAILED.has(status)) };
}

/** A letter that came back, and of which the mail has been forgotten here, is all that there is of it. */
async function keepLetter(app: App, tx: Db, mail: Sent): Promise<void> {
  const { id, response } = mail;
  const given_up = await tx
    .selectFrom("outgoing_mails")
    .select("id")
    .where("id", "=", id)
    .where("id", "in", mailsGivenUp())
    .executeTakeFirst();
  if (!given_up) await keepForOperator(app, tx, mail, response ?? "");
}

/** The whole of a private mail is in the letter, which is not kept either. What is captured was given to nobody yet. */
async function forgetLetter(app: App, tx: Db, { id, status }: Sent, { state }: MessageRow): Promise<void> {
  if (status !== "sent" || state !== "done" || app.config.outbound.mode === "capture") return;
  await forgetLetterBytes(app, tx, id);
}

async function tellNotForwarded(app: App, tx: Db, { id, user_id }: MessageRow): Promise<void> {
  await tellOwnerLater(app, tx, { user_id, kind: "not_forwarded", message_id: id });
}

/** What became of a forward. `was_forgotten`: the mail was deleted here before. */
function stepOf(
  address: string,
  { status, response }: Pick<OutgoingMailRow, "status" | "response">,
  was_forgotten = false,
): StepDraft {
  if (FAILED.has(status)) {
    const kept = was_forgotten
      ? " Its content has been deleted here since, but the operator of this server can send the letter again (`mailwright queue`)."
      : "";
    return {
      type: "warning",
      name: STEP,
      status: "error",
      output: `It was not forwarded to ${address}: ${response ?? ""}${kept}`,
    };
  }
  const output = {
    queued: `It is being forwarded to ${address}.`,
    deferred: `It is being forwarded to ${address}, but has not arrived yet: ${response ?? ""}`,
    sent: `It was forwarded to ${address}.`,
  }[status as "queued" | "deferred" | "sent"];
  return { type: "context", name: STEP, output };
}

/** The steps of a message with this one in place of the one before it. */
function withStep({ steps: stored }: MessageRow, step: StepDraft): Step[] {
  const steps = storedJson<Step[]>(stored, []);
  const at = steps.findIndex(({ type, name }) => name === STEP && type !== "tool_call");
  const [made] = toSteps([step]);
  if (made === undefined) return steps;
  const index = at === -1 ? steps.length : at;
  return steps.toSpliced(index, at === -1 ? 0 : 1, { ...made, index });
}
