import type { App } from "../app.ts";
import type { Caller } from "../resources/accounts/sessions.ts";
import { refuseFull } from "../resources/billing/storage.ts";
import type { InboxRow, UserRow } from "../db/schema.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { ownInbox } from "../resources/inboxes/inboxes.ts";
import { dedupeKeyOfId, readMailWords } from "../inbound/mail-words.ts";
import { replySubject } from "../mail/writing/compose.ts";
import { readHeaders } from "../mail/reading/headers.ts";
import { acceptMail, storeRawMail } from "../inbound/accept.ts";
import { readRun } from "../resources/messages/messages.ts";
import { acceptInline, awaitEnd } from "./inline.ts";

const SUBJECT = "Test mail";
const INSTRUCTION = "Answer in one short sentence that this inbox works.";
const BASE64_LINE = /.{76}/g;

export interface InboxTest {
  inbox: InboxRow;
  instruction?: string;
  /** Material, which the model reads and never obeys. */
  content?: string;
}

/** Sends a mail of the owner's through an inbox as if it had come over SMTP, and waits for what becomes of it. */
export async function testInbox(
  app: App,
  { user, key_id }: Pick<Caller, "user" | "key_id">,
  test: InboxTest,
) {
  const raw = testMail(app, user, test);
  const mail = readMailWords(raw, readHeaders(raw), user.email);
  const bytes = raw.byteLength;
  const inline = { user, wanted: true, bytes, stores: [raw] };
  const { row, job } = await acceptInline(app, inline, async (tx, slot) => {
    await refuseFull(app, tx, user, bytes);
    // The inbox is looked up again, because it may have been deleted since.
    const inbox = await ownInbox(tx, user, test.inbox.id);
    return acceptMail(app, tx, {
      ...mail,
      inbox,
      user,
      key_id,
      slot,
      source: "test",
      raw_mail_id: await storeRawMail(app, tx, raw),
      size: bytes,
      sender: user.email,
      authority: "owner",
      auth: { spf: "none", dkim: "none", dmarc: "none", aligned: false, vouched: true },
      vouched: true,
      no_reply_reason: null,
      dedupe_key: dedupeKeyOfId(mail.rfc_message_id ?? "", user.email),
      failed_before: false,
      conversation_id: null,
      tags: [],
    });
  });
  const ms = app.config.routing.sync_budget_seconds * 1_000;
  const end = await awaitEnd(app, row.id, { job, ms });
  const view = { ...(await readRun(app, user, row.id)), ...end?.unstored };
  const delivered = view.reply_status === "sent";
  return { ...view, reply: { to: user.email, subject: replySubject(SUBJECT), delivered } };
}

/**
 * Builds the mail. The content is a file of it, so that nothing in the content can be taken for the owner's own words.
 */
function testMail(app: App, user: UserRow, { inbox, instruction = "", content = "" }: InboxTest): Buffer {
  const boundary = `=_${Bun.randomUUIDv7()}`;
  const parts = [textPart(instruction.trim() || INSTRUCTION)];
  if (content.trim() !== "")
    parts.push(`Content-Disposition: attachment; filename="content.txt"\r\n${textPart(content)}`);
  const head = [
    `Date: ${new Date(app.wallMs()).toUTCString().replace("GMT", "+0000")}`,
    `Message-ID: <${Bun.randomUUIDv7()}@${inbox.domain}>`,
    `From: <${user.email}>`,
    `To: <${addressOf(inbox)}>`,
    `Subject: ${SUBJECT}`,
    "MIME-Version: 1.0",
    `Content-Type: multipart/mixed; boundary="${boundary}"`,
  ];
  const body = parts.map((part) => `--${boundary}\r\n${part}\r\n`).join("");
  return Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}--${boundary}--\r\n`);
}

function textPart(text: string): string {
  const base64 = Buffer.from(text).toString("base64").replace(BASE64_LINE, "$&\r\n");
  return `Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n${base64}`;
}
