import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { UserRow } from "../db/schema.ts";
import { writtenMoment } from "../lib/written-moment.ts";
import { composeReply } from "../mail/writing/compose.ts";
import { signMail } from "../mail/writing/dkim.ts";
import { markOfMail } from "../mail/writing/mark-of-mail.ts";
import { bounceAddress, newMessageId } from "../mail/writing/own-ids.ts";
import { written } from "../mail/writing/written.ts";
import { sendLater } from "../mail/sending/outgoing.ts";
import { lastMoment } from "../resources/approvals/approvals.ts";
import { numberOf } from "../resources/approvals/number.ts";
import { rememberReplyTag } from "../resources/conversations/conversations.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { asCode } from "../trust/shown/as-code.ts";
import { callName, plainName, shortTarget } from "../trust/shown/call-name.ts";
import type { Run } from "./close.ts";
import { asBlock } from "./form.ts";
import type { HeldCall } from "./hold-call.ts";
import { inboxWithKeys, replyAddress } from "./reply.ts";
import { hasUnseenWriting } from "./written-texts.ts";

const SUBJECT_CHARS = 100;

/** A letter that asks the owner about one call. */
export interface ApprovalLetter {
  rfc_message_id: string;
  queue: (tx: Db) => Promise<void>;
}

/**
 * Composes and signs the letter that asks the owner of an inbox about a call. It has an address of its own for the answer, and
 * holds no words of a model but the arguments of the call: an answer of a model could say something else of it.
 */
export async function prepareApprovalLetter(
  app: App,
  run: Run,
  { held, user, nth }: { held: HeldCall; user: UserRow; nth: number },
): Promise<ApprovalLetter | undefined> {
  const { message } = run;
  const { conversation_id } = message;
  if (conversation_id === null || user.email_verified !== 1) return undefined;
  const { inbox, keys } = await inboxWithKeys(app, run.inbox);
  const id = app.newId();
  const thread = { conversation_id, participant: user.email, approval_id: held.id };
  // Programs that put mails of one subject together would show all letters of a message, and its answer, as one.
  const which = run.held.length > 1 ? ` (${nth} of ${run.held.length})` : "";
  // A tool that answers mails could say a word as short as that in the owner's name.
  const number = (await hasUnseenWriting(app, user.id)) ? numberOf(app, held.id) : null;
  const composed = await composeReply({
    from: { name: inbox.label, address: addressOf(inbox) },
    to: user.email,
    reply_to: replyAddress(app, thread, inbox),
    envelope_from: bounceAddress(app, id, inbox.domain),
    subject: `Waits for your yes: ${callName(held)}${which}`,
    message_id: newMessageId(app, id, inbox.domain),
    hop: message.hop + 1,
    words: written(wordsOf(app, run, { held, user, number }), { own: true }),
    date: new Date(app.wallMs()),
    kind: "notice",
  });
  const raw = await signMail(composed.raw, inbox.domain, keys);
  const { envelope_from, envelope_to, rfc_message_id } = composed;
  return {
    rfc_message_id,
    async queue(tx) {
      await rememberReplyTag(app, tx, thread, inbox);
      // It belongs to no message, so that its Message-ID, which others may see, leads nobody into the thread.
      const mail = { id, user_id: user.id, message_id: null, kind: "notice" as const, private: true };
      await sendLater(app, tx, { ...mail, envelope_from, envelope_to, rfc_message_id, raw });
    },
  };
}

const CAUSES: Record<HeldCall["cause"], string> = {
  boundary: "You are asked because the instruction does not allow this by itself.",
  marked:
    "You are asked because you have marked this tool as one to ask about first, or because an API key has made its connection and nobody has confirmed that on its page.",
  flag: "You are asked because the instruction says `--ask`.",
};
const BY_OTHERS =
  "Before the model wanted this it had read words of others, such as a mail, a file or the answer of a tool: they may be behind it. Look whether it is what *you* want.";
const BY_MODEL = "The words in it are those of the model.";

function wordsOf(
  app: App,
  { message, inbox }: Run,
  { held, user, number }: { held: HeldCall; user: UserRow; number: string | null },
): string {
  const until = writtenMoment(lastMoment(app), user.timezone);
  const yes = number === null ? "yes" : `yes ${number}`;
  return [
    `**May this be done?** Your inbox ${asCode(inbox.label)} works on ${workOf(message)}, and would call ${asCode(plainName(held.tool))} of ${asCode(`@${shortTarget(held)}`)} with:`,
    asBlock(held.shown || "⟨no arguments⟩", ""),
    ...(held.changes === null
      ? []
      : [
          `**What it would change** of what ${asCode(`@${shortTarget(held)}`)} answered earlier in this work. It may be otherwise there by now; the old values are words of others:`,
          asBlock(held.changes, ""),
        ]),
    `${CAUSES[held.cause]}${whereTo(held)} ${held.tainted === 1 ? BY_OTHERS : BY_MODEL}`,
    `**Nothing has been done.** To have exactly this done, once, answer this mail with \`${yes}\` alone on its first line. With \`no\` it is never done. Whatever else you write is an ordinary mail to the inbox, and allows nothing.`,
    `You can also decide [on its page](${app.base_url}/app/approvals/${held.id}). After ${until} it cannot be allowed any more.`,
    ...(number === null ? [] : [markOfMail()]),
  ].join("\n\n");
}

/** The words of the guard that say what it stopped the call for, as an argument may hide it. */
function whereTo({ unnamed }: HeldCall): string {
  return unnamed.length === 0
    ? ""
    : " It names none of the places that stand first there, behind ⟨not named⟩: to these something would go.";
}

function workOf({ source, sender, subject, authority, schedule_id }: Run["message"]): string {
  const about = subject ? ` about ${asCode(subject.slice(0, SUBJECT_CHARS))}` : "";
  if (schedule_id !== null) return `a run of a schedule${about}`;
  if (source === "api") return `a call over HTTP${about}`;
  return authority === "owner" ? `a mail of yours${about}` : `a mail from ${asCode(sender ?? "")}${about}`;
}
