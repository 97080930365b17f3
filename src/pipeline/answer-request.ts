import type { App } from "../app.ts";
import type { ApprovalRow } from "../db/schema.ts";
import { BUTTON } from "../inbound/accept-button.ts";
import { markOfMail } from "../mail/writing/mark-of-mail.ts";
import { putBack, settle, take, whenSaid, whyDecided } from "../resources/approvals/approvals.ts";
import { numberOf } from "../resources/approvals/number.ts";
import { approvalById } from "../resources/approvals/view.ts";
import { type Consent, consentIn } from "../trust/own-words/consent.ts";
import { asCode, asText } from "../trust/shown/as-code.ts";
import { excerptOf } from "../trust/shown/redact.ts";
import { callName } from "../trust/shown/call-name.ts";
import { callApproved, GONE, type Outcome } from "./approved-call.ts";
import { closeRun, type Ending, type Run } from "./close.ts";
import { asBlock } from "./form.ts";
import { warningStep } from "./steps.ts";
import { hasUnseenWriting } from "./written-texts.ts";

/** How much of what a tool has answered is mailed. */
const MAX_ANSWER_CHARS = 20_000;
const REST =
  "Below your answer stood more words: they were not read. Send what else you want in a mail of its own.";

/**
 * Does what a message says to a request for consent: the owner's yes or no, in an answer to the letter about it, or by the button of
 * its page. False for any other message, also one to the address of such a letter.
 */
export async function answerRequest(app: App, run: Run): Promise<boolean> {
  const { message } = run;
  const said = saidBy(run);
  if (message.approval_id === null) return false;
  const [approval] = await approvalById(app.db, { id: message.approval_id, user_id: message.user_id });
  if (said === undefined) {
    if (approval?.state === "pending") run.steps.push(warningStep(stillWaits(approval)));
    return false;
  }
  if (hasMore(run)) run.steps.push(warningStep(REST));
  // What a rule says of the form of answers is not meant for this one.
  const settings = { ...run.settings, form: null, attach: null, private: false };
  const answering = { ...run, settings };
  if (approval === undefined) await closeRun(app, answering, free(GONE));
  else if (said.says === "no") await closeRun(app, answering, await refused(app, run, approval));
  else {
    const unsure = await whyUnsure(app, run, approval, said);
    if (unsure === null) await consented(app, answering, approval);
    else await closeRun(app, answering, { ...free(unsure), about: approval.id });
  }
  return true;
}

/**
 * What the owner says. Only an authenticated mail of the owner's own counts, by the first line of its own words, and no mail that a
 * program wrote by itself.
 */
function saidBy({ message, input }: Run): Consent | undefined {
  const { authority, source, schedule_id, no_reply_reason } = message;
  if (authority !== "owner" || schedule_id !== null) return undefined;
  // Nobody but the server makes a call with the id of a request.
  if (source === "api") return message.instruction === BUTTON ? { says: "yes", number: null } : undefined;
  if (source !== "email" || no_reply_reason !== null) return undefined;
  // Whatever stands below the first line, such as a signature with a link, is no reason for a doubt.
  return consentIn(input.opening);
}

/**
 * Why a yes by mail does not count as it stands: its number is that of another request, or it has none though a tool that answers mails
 * may have said it in the owner's name.
 */
async function whyUnsure(
  app: App,
  { message }: Run,
  approval: ApprovalRow,
  { number }: Consent,
): Promise<string | null> {
  const own = numberOf(app, approval.id);
  if (message.source !== "email" || number === own) return null;
  const name = asCode(callName(approval));
  const how = `To allow it, answer this mail with \`yes ${own}\`, or use the button on the page “Approvals”.\n\n${markOfMail()}`;
  if (number !== null) return `${name} was not called: ${number} is not the number of this request. ${how}`;
  if (!(await hasUnseenWriting(app, message.user_id))) return null;
  return `${name} was not called yet: in the last 30 days a tool has written something that others may have chosen, and could have said a short word in your name. ${how}`;
}

function stillWaits(approval: ApprovalRow): string {
  return `Your mail was read as an ordinary one: ${callName(approval)} still waits. To decide about it, answer the mail that asked you with yes or no alone on the first line, or use the page “Approvals”.`;
}

function hasMore({ input, message }: Run): boolean {
  return message.source === "email" && input.instruction.trim().includes("\n");
}

/** Takes a no. It is stored before the answer says so, as a yes may come at the same moment from the page. */
async function refused(app: App, { message, owner_timezone }: Run, approval: ApprovalRow): Promise<Ending> {
  const left = `${asCode(callName(approval))} is not called, and never will be for this request.`;
  if (approval.state === "refused" && approval.run_id === message.id) return free(left);
  const now = { now: whenSaid(app, message), timezone: owner_timezone };
  const decided = whyDecided(approval, now);
  if (decided !== null) return free(`${asText(decided.sentence)} ${decided.mend}`);
  const taken = await app.write((tx) =>
    take(app, tx, { id: approval.id, run_id: message.id, from: ["pending"], state: "refused" }),
  );
  return free(taken ? left : "It was decided about at the same moment: its page says how.");
}

async function consented(app: App, run: Run, approval: ApprovalRow): Promise<void> {
  const outcome = await callApproved(app, run, approval);
  const { id } = approval;
  const alongside: Run["alongside"] = outcome.called
    ? (tx) => settle(app, tx, { id, state: outcome.state, outcome: excerptOf(outcome.text) })
    : (tx) => putBack(tx, { id, run_id: run.message.retry_of ?? run.message.id });
  await closeRun(app, { ...run, alongside }, endingOf(approval, outcome));
}

function endingOf(approval: ApprovalRow, outcome: Outcome): Ending {
  const name = asCode(callName(approval));
  if (!outcome.called)
    return { ...free(`${name} was not called. ${asText(outcome.why)}`), about: approval.id };
  const { state, text } = outcome;
  const words = text.trim().slice(0, MAX_ANSWER_CHARS).toWellFormed();
  const answer = words === "" ? "" : `\n\n${asBlock(words, "")}`;
  const result = {
    done: `Done, once, as you allowed: ${name}.${words === "" ? "" : " It answered:"}${answer}`,
    failed: `${name} was called, once, as you allowed, and failed:${answer}\n\n${ANEW}`,
    unknown: `${name} was called as you allowed, and it may or may not have been done: look there.${answer}\n\n${ANEW}`,
  }[state];
  return { state: "done", result, model: null, usage: null };
}

const ANEW =
  "Your consent was for one call, and is used up. If you still want it done, ask for it again in a new mail.";

function free(result: string): Extract<Ending, { state: "done" }> {
  return { state: "done", result, model: null, usage: null, free: true };
}
