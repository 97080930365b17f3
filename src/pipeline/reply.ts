import { storedAuth } from "../resources/messages/stored-auth.ts";
import type { ToolFile } from "../trust/guard/tool.ts";
import { wantsFooter } from "../resources/accounts/profile.ts";
import type { App } from "../app.ts";
import { rememberReplyTag, replyTag, type Thread } from "../resources/conversations/conversations.ts";
import { approvalById } from "../resources/approvals/view.ts";
import type { Db } from "../db/database.ts";
import { prepared } from "../db/prepared.ts";
import type { InboxRow, MessageRow, ReplyStatus } from "../db/schema.ts";
import { signingKeys } from "../resources/domains/domains.ts";
import { addressOf } from "../resources/inboxes/addresses.ts";
import { isKnownAddress } from "../resources/inboxes/allowlist.ts";
import { inboxById } from "../resources/inboxes/inboxes.ts";
import {
  composeReply,
  type OutgoingAttachment,
  type ReplyInput,
  references,
  replySubject,
} from "../mail/writing/compose.ts";
import { type DkimKeys, signMail } from "../mail/writing/dkim.ts";
import { serviceKeys } from "../mail/writing/dkim-keys.ts";
import { mailboxes, type MailHeaders, messageIds } from "../mail/reading/headers.ts";
import { sendLater } from "../mail/sending/outgoing.ts";
import { bounceAddress, newMessageId } from "../mail/writing/own-ids.ts";
import type { Picture } from "../mail/writing/pictures.ts";
import type { Written } from "../mail/writing/written.ts";

/** From this hop on a mail gets no reply: two servers like this one must not write to each other for ever. */
const MAX_HOPS = 5;

export interface Answer {
  kind: "reply" | "notice";
  /** The request for consent that an answer to the mail goes to: its words are this server's own. */
  approval_id?: string | undefined;
  words: Written;
  /** Whether a model wrote them. */
  by_model?: boolean;
  /** What the run says below the answer about itself. */
  notes?: Written;
  /** Turns the answer into a mail, if that may take long. */
  build?: ReplyInput["build"];
  files?: ToolFile[];
  /** The files of `files` that the words show as pictures. */
  pictures?: Picture[];
  /** True if the bytes of the mail are deleted once they have been handed over. */
  private?: boolean;
  /** Bytes above which the mail is treated as a private one: its bytes are deleted once they have been handed over. */
  most_kept?: number;
}

export interface Answered {
  message: MessageRow;
  inbox: InboxRow;
  /** Null where no mail is answered: the run of a schedule that was made over HTTP. */
  headers: MailHeaders | null;
}

/** A signed answer, ready for the closing transaction to queue. */
export interface PreparedReply {
  /** `event_id`: the event that webhooks are told once the first attempt to send was made. */
  queue: (tx: Db, event_id: string | null) => Promise<ReplyStatus>;
}

/** Whether the sender of a message may be written to at all. */
export function mayAnswer(message: MessageRow, inbox: InboxRow): boolean {
  return (
    (message.source !== "api" || message.schedule_id !== null || message.approval_id !== null) &&
    inbox.reply_enabled === 1 &&
    message.no_reply_reason === null &&
    message.hop < MAX_HOPS
  );
}

/** Composes and signs an answer. Nothing is stored before the closing transaction calls `queue`. */
export async function prepareReply(
  app: App,
  { message, inbox: known, headers }: Answered,
  answer: Answer,
): Promise<PreparedReply> {
  const { inbox, keys } = await inboxWithKeys(app, known);
  const id = app.newId();
  const rfc_message_id = newMessageId(app, id, inbox.domain);
  const answered_id = message.rfc_message_id ?? (await letterOf(app.db, message));
  const goes_on = threadOf(message);
  const thread = goes_on && { ...goes_on, approval_id: answer.approval_id ?? null };
  // The run of a schedule that was made over HTTP is mailed of its own accord.
  const answers_mail = message.raw_mail_id !== null;
  const composed = await composeReply({
    from: { name: inbox.label, address: addressOf(inbox) },
    to: await targetOf(app, { message, inbox, headers }),
    ...(thread === null ? {} : { reply_to: replyAddress(app, thread, inbox) }),
    envelope_from: answer.kind === "notice" ? "" : bounceAddress(app, id, inbox.domain),
    subject: answers_mail ? replySubject(message.subject ?? "") : (message.subject ?? ""),
    ...threadedTo(answered_id, headers),
    message_id: rfc_message_id,
    hop: message.hop + 1,
    words: answer.words,
    ...(answer.notes === undefined ? {} : { notes: answer.notes }),
    ...(answer.build === undefined ? {} : { build: answer.build }),
    attachments: attachmentsOf(answer),
    ...(await footerOf(app, inbox, answer)),
    date: new Date(app.wallMs()),
    kind: answers_mail ? answer.kind : "notice",
  });
  const raw = await signMail(composed.raw, inbox.domain, keys);
  const { envelope_from, envelope_to } = composed;
  const { user_id } = message;
  const mail = {
    id,
    user_id,
    message_id: message.id,
    kind: answer.kind,
    envelope_from,
    envelope_to,
    rfc_message_id,
    raw,
    private: isForgotten(answer, raw),
  };
  return {
    async queue(tx, event_id) {
      if (thread !== null) await rememberReplyTag(app, tx, thread, inbox);
      return sendLater(app, tx, { ...mail, event_id });
    },
  };
}

/** The header fields that put a mail below the one that it answers. */
function threadedTo(
  id: string | null,
  headers: MailHeaders | null,
): Pick<ReplyInput, "in_reply_to" | "references"> {
  const before = headers === null ? [] : parentIds(headers);
  return id === null
    ? { references: references(before) }
    : { in_reply_to: id, references: references(before, id) };
}

/** The letter about a request that was answered on its page: what came of it is mailed in the thread of that. */
async function letterOf(db: Db, { approval_id, user_id }: MessageRow): Promise<string | null> {
  const [approval] = approval_id === null ? [] : await approvalById(db, { id: approval_id, user_id });
  return approval?.letter_id ?? null;
}

/** Names the AI below what a model wrote; all else was written by this server. */
async function footerOf(
  { db }: App,
  inbox: InboxRow,
  { by_model = false }: Answer,
): Promise<{ footer?: string }> {
  if (!by_model || !(await wantsFooter(db, inbox))) return {};
  return { footer: `Sent by AI on behalf of ${inbox.label}` };
}

/** The thread that an answer to a message goes on with, for its sender. */
export function threadOf({
  conversation_id,
  sender,
}: Pick<MessageRow, "conversation_id" | "sender">): Thread | null {
  return conversation_id === null ? null : { conversation_id, participant: sender ?? "" };
}

/** The address at which a mail of the thread's participant continues the thread. */
export function replyAddress(
  app: App,
  thread: Thread,
  { local_part, domain }: Pick<InboxRow, "local_part" | "domain">,
): string {
  return `${local_part}+${replyTag(app, thread)}@${domain}`;
}

function isForgotten({ private: is_private = false, most_kept }: Answer, { byteLength }: Buffer): boolean {
  return is_private || (most_kept !== undefined && byteLength > most_kept);
}

function attachmentsOf({ files = [], pictures = [] }: Answer): OutgoingAttachment[] {
  const cids = new Map(pictures.map(({ filename, cid }) => [filename, cid]));
  return files.map(({ filename, content_type, bytes }) => {
    const file = { filename, content_type, bytes: Buffer.from(bytes) };
    const cid = cids.get(filename);
    return cid === undefined ? file : Object.assign(file, { cid });
  });
}

/** The inbox and the keys of its domain. If the domain has been removed during the run, the inbox as it is now. */
export async function inboxWithKeys(app: App, inbox: InboxRow): Promise<{ inbox: InboxRow; keys: DkimKeys }> {
  const keys = await signingKeys(app, inbox.domain);
  if (keys) return { inbox, keys };
  const [moved = inbox] = await inboxById(app.db, { id: inbox.id });
  return { inbox: { ...moved, domain: app.config.smtp.domain }, keys: await serviceKeys(app) };
}

/**
 * Where the answer goes: to From. It goes to a Reply-To only if the owner or a listed sender has put that into a mail
 * which is as its author sent it, and if the owner has listed that address too or it is the owner's own. Else anybody
 * could have our answers sent to a third party. To share a domain with the author proves nothing.
 */
async function targetOf(app: App, { message, inbox, headers }: Answered): Promise<string> {
  const { authority } = message;
  const from = message.sender ?? "";
  const { vouched } = storedAuth(message);
  if (vouched !== true || (authority !== "owner" && authority !== "listed")) return from;
  const reply_to = soleAddress(headers?.get("reply-to") ?? "");
  if (reply_to === null || reply_to === from) return from;
  const [owner] = await ownerOf(app.db, { id: inbox.user_id });
  return isKnownAddress(reply_to, { inbox, owner }) ? reply_to : from;
}

const ownerOf = prepared((db, key: { id: string }) =>
  db.selectFrom("users").select(["email", "email_verified"]).where("id", "=", key.id),
);

/** The address of a Reply-To with exactly one mailbox; null for several, and for a group. */
function soleAddress(value: string): string | null {
  const list = mailboxes(value);
  if (!list.ok || list.groups > 0 || list.mailboxes.length !== 1) return null;
  return list.mailboxes[0]?.address ?? null;
}

function parentIds(headers: MailHeaders): string[] {
  const own = messageIds(headers.get("references") ?? "");
  return own.length > 0 ? own : messageIds(headers.get("in-reply-to") ?? "");
}
