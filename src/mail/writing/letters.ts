import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { composeReply, type OutgoingAttachment } from "./compose.ts";
import { signMail } from "./dkim.ts";
import { serviceKeys } from "./dkim-keys.ts";
import { type QueuedMail, sendLater } from "../sending/outgoing.ts";
import { bounceAddress, newMessageId } from "./own-ids.ts";
import { written } from "./written.ts";
import { MB } from "../../lib/sizes.ts";

/**
 * A letter is a mail that the server writes by itself, such as a sign-in code: it answers nothing and belongs to no
 * inbox.
 */
export interface Letter {
  /** The account it belongs to; it is deleted with the account. */
  user_id: string;
  to: string;
  subject: string;
  markdown: string;
  reply_to?: string;
  attachments?: OutgoingAttachment[];
  /**
   * Whether it carries words of somebody who was told that we accepted them. If such a letter bounces, its job is kept
   * for the operator.
   */
  entrusted?: boolean;
  /** The message that it takes to the owner of its inbox. */
  forwards?: string;
}

/** Bytes of a mail that most mail providers still take once it is encoded as a file. */
export const MAX_ENCLOSED_BYTES = 15 * MB;

/** Returns a complete mail as an attachment, of a type that no mail program opens by itself. */
export function enclosed(bytes: Buffer): OutgoingAttachment {
  return { filename: "message.eml", content_type: "application/octet-stream", bytes };
}

/** Queues a letter in the caller's transaction. */
export type QueueLetter = (tx: Db) => Promise<void>;

/**
 * Composes and signs a letter; signing is too slow for a transaction. The letter is stored and sent only once the
 * returned function is called.
 */
export async function prepareLetter(app: App, letter: Letter): Promise<QueueLetter> {
  const id = app.newId();
  const { domain } = app.config.smtp;
  const from = app.config.outbound.from || `mailwright@${domain}`;
  const composed = await composeReply({
    from: { name: "Mailwright", address: from },
    to: letter.to,
    // Bounces come to this server even where From is an address elsewhere.
    envelope_from: bounceAddress(app, id, domain),
    subject: letter.subject,
    message_id: newMessageId(app, id, domain),
    hop: 0,
    words: written(letter.markdown, { own: true }),
    date: new Date(app.wallMs()),
    kind: "notice",
    ...(letter.reply_to === undefined ? {} : { reply_to: letter.reply_to }),
    ...(letter.attachments === undefined ? {} : { attachments: letter.attachments }),
  });
  // Our keys are published under our own domain; a relay signs for any other.
  const raw = from.endsWith(`@${domain}`)
    ? await signMail(composed.raw, domain, await serviceKeys(app))
    : composed.raw;
  const { rfc_message_id, envelope_from, envelope_to } = composed;
  return async (tx) => {
    const mail = {
      id,
      user_id: letter.user_id,
      message_id: letter.forwards ?? null,
      kind: letter.forwards === undefined ? "notice" : "forward",
      envelope_from,
      envelope_to,
      rfc_message_id,
      raw,
      entrusted: letter.entrusted === true,
    } satisfies QueuedMail;
    await sendLater(app, tx, mail);
  };
}
