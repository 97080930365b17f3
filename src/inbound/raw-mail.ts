import type { App } from "../app.ts";
import { AppError } from "../errors.ts";
import { logFieldsOf } from "./decide.ts";
import { receiveMail, type Reception, type Recipient } from "./receive.ts";
import { recipientOrRefusal, refuseForNow, comparableAddress } from "./recipients.ts";
import { isKnown, refuseOverMails } from "./visits.ts";
import type { Envelope } from "./raw-mail-signature.ts";

const RETRY_SECONDS = 120;

/** The reply that the SMTP listener would have given for one recipient. */
export interface RecipientAnswer {
  recipient: string;
  status: "accepted" | "refused";
  code: number;
  enhanced: string;
  text: string;
}

/**
 * Takes a mail as the SMTP listener would from `remote_ip`. Accepted mail is on disk when this resolves. Throws
 * `unavailable`, with nothing stored, when the caller should keep the mail and come again.
 */
export async function takeRawMail(app: App, raw: Buffer, envelope: Envelope): Promise<RecipientAnswer[]> {
  const { remote_ip, helo } = envelope;
  const later =
    remote_ip === "" ? undefined : refuseOverMails(app, { known: isKnown(app, remote_ip) }, remote_ip);
  if (later) throw comeAgain(later);
  const mail_from = comparableAddress(envelope.mail_from);
  const size = raw.byteLength;
  const found = await Promise.all(
    envelope.rcpt_to.map(async (given) => {
      const known = await recipientOrRefusal(app, comparableAddress(given));
      const full = isRecipient(known)
        ? await refuseForNow(app, known, { size, mail_from, remote_address: remote_ip })
        : undefined;
      return { given, answer: full ?? known };
    }),
  );
  const recipients = found.map(({ answer }) => answer).filter(isRecipient);
  const waiting = found.find(({ answer }) => !isRecipient(answer) && answer.code < 500);
  // The whole mail comes again only if nobody has taken it: one answer for all would bring it twice to those who had.
  if (waiting && recipients.length === 0) throw comeAgain(waiting.answer as Reception);
  const delivery = {
    raw,
    mail_from,
    helo,
    remote_address: remote_ip,
    recipients,
    answered_each: true as const,
  };
  const began = performance.now();
  const reception = recipients.length === 0 ? undefined : await receiveMail(app, delivery);
  if (reception && reception.code !== 250 && reception.code < 500) throw comeAgain(reception);
  const ms = Math.round(performance.now() - began);
  if (reception?.code === 250) app.log.info({ ...logFieldsOf(delivery), door: "http", ms }, "mail accepted");
  return found.map(({ given, answer }) => {
    const own = isRecipient(answer) ? reception?.each?.get(answer.address) : answer;
    return answerOf(given, own ?? (reception as Reception));
  });
}

function isRecipient(answer: Awaited<ReturnType<typeof recipientOrRefusal>>): answer is Recipient {
  return "address" in answer;
}

function answerOf(
  recipient: string,
  { code, enhanced, text }: Pick<Reception, "code" | "enhanced" | "text">,
): RecipientAnswer {
  return { recipient, status: code === 250 ? "accepted" : "refused", code, enhanced, text };
}

function comeAgain({ text }: Pick<Reception, "text">): AppError {
  return new AppError("unavailable", `${text}.`, {
    fix: "Keep the mail, and hand it in again later.",
    retry_after_seconds: RETRY_SECONDS,
  });
}
