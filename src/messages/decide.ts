import { createHash } from "node:crypto";
import type { App } from "../app.ts";
import { dedupeKeyOfId, findThread } from "../conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import type { Authority, InboxRow, UserRow } from "../db/schema.ts";
import { splitAddress, tagsOf } from "../inboxes/addresses.ts";
import { addLogField } from "../log.ts";
import { type InboundPolicy, inboxById } from "../inboxes/inboxes.ts";
import type { Identity } from "../mail/authenticate.ts";
import { decodeWords, type MailHeaders, messageIds } from "../mail/headers.ts";
import type { QueueLetter } from "../mail/letters.ts";
import type { MailClass } from "../mail/machine-mail.ts";
import { liftSuppression } from "../mail/suppressions.ts";
import { acceptMail, logRefusedMail, storeRawMail } from "./accept.ts";
import { noteBounce } from "./bounces.ts";
import { isMeantFor } from "./vouched.ts";
import { brokenCap, countDuplicate, judgeSender } from "./policy.ts";

/** Refused mails that one inbox keeps in its activity per hour; a flood of them must not fill the disk. */
const MAX_REFUSED_ROWS_PER_HOUR = 200;
const HOUR_SECONDS = 3_600;
const MAX_BLANK_BYTES = 1_000;

/** One mail as it came over SMTP, whole, with the inboxes its recipients name. */
export interface Delivery {
  raw: Buffer;
  /** "" is the null reverse-path. */
  mail_from: string;
  helo: string;
  remote_address: string;
  recipients: Recipient[];
}

export interface Recipient {
  address: string;
  /** Absent for a bounce address and for a role address. */
  inbox?: { row: InboxRow; user: UserRow };
  /** Of `postmaster@` and `abuse@`; the letter holds the mail for the administrator. */
  role?: { administrator: UserRow; letter?: QueueLetter };
}

/** What the SMTP session answers. `code` 250 means: on disk and synced. */
export interface Reception {
  code: 250 | 421 | 451 | 452 | 550 | 552 | 554;
  enhanced: string;
  text: string;
  /** By address, where one transaction had several recipients: SMTP has one answer for all of them. */
  each?: Map<string, Reception>;
}

/** What was found out about a mail once, for all of its recipients. */
export interface Examined {
  headers: MailHeaders;
  from_address: string;
  identity: Identity & { trusted_network: boolean };
  kind: MailClass;
  subject: string;
  rfc_message_id: string | null;
  parent_ids: string[];
  hop: number;
  body_hash: string;
}

export type Refusal = Pick<Reception, "code" | "enhanced" | "text"> & {
  reason: string;
  headers?: MailHeaders;
  sender?: string;
  /** What was found out about the sender, if it came to that. */
  identity?: Examined["identity"];
};

export const ACCEPTED: Reception = { code: 250, enhanced: "2.6.0", text: "Message accepted" };

const REPORTS_ONLY: Reception = {
  code: 550,
  enhanced: "5.7.1",
  text: "This address takes delivery reports only; write to the address in From or Reply-To",
};

/** What the header section and the body say by themselves. */
export function readExamined(raw: Buffer, headers: MailHeaders) {
  const references = messageIds(headers.get("references") ?? "").toReversed();
  return {
    subject: subjectOf(headers),
    rfc_message_id: idOf(headers),
    parent_ids: [...messageIds(headers.get("in-reply-to") ?? ""), ...references],
    hop: Number.parseInt(headers.get("x-mailwright-hop") ?? "0", 10) || 0,
    body_hash: bodyHash(raw.subarray(headers.body_offset), headers),
  };
}

/** The answer for the whole transaction: 250 as soon as one recipient took the mail, else the first refusal. */
export async function decideForAll(app: App, tx: Db, delivery: Delivery, mail: Examined): Promise<Reception> {
  const store = storeOnce(app, tx, delivery.raw);
  const each = new Map<string, Reception>();
  let refusal: Reception | undefined;
  let accepted = false;
  for (const recipient of delivery.recipients) {
    const answer = await decide(app, tx, { delivery, recipient, mail, store });
    each.set(recipient.address, answer);
    if (answer.code === 250) accepted = true;
    else refusal ??= answer;
  }
  const answer = accepted || !refusal ? ACCEPTED : refusal;
  return each.size > 1 ? { ...answer, each } : answer;
}

/** Makes a refusal visible in the activity of an inbox. */
export async function logRefusal(
  app: App,
  tx: Db,
  { inbox, refusal }: { inbox: InboxRow; refusal: Refusal },
): Promise<void> {
  const rule = { limit: MAX_REFUSED_ROWS_PER_HOUR, window_seconds: HOUR_SECONDS };
  if (!app.limiter.take(`refused:${inbox.id}`, rule).ok) return;
  const { identity } = refusal;
  await logRefusedMail(app, tx, {
    inbox,
    state: "rejected",
    reason: refusal.reason,
    error: refusal.text,
    authority: identity?.authenticated === true ? "stranger" : "unauthenticated",
    sender: refusal.sender ?? null,
    subject: refusal.headers ? subjectOf(refusal.headers) : null,
    rfc_message_id: refusal.headers ? idOf(refusal.headers) : null,
    auth: identity ? authOf(identity) : null,
  });
}

/** As the story of a mail that was not taken tells it. */
function authOf({ auth, trusted_network }: Examined["identity"]): string {
  return JSON.stringify({ ...auth, trusted_network });
}

interface Decision {
  delivery: Delivery;
  recipient: Recipient;
  mail: Examined;
  store: () => Promise<string>;
}

async function decide(app: App, tx: Db, decision: Decision): Promise<Reception> {
  const { mail, recipient, delivery } = decision;
  const { kind } = mail;
  if (recipient.role) {
    await recipient.role.letter?.(tx);
    return ACCEPTED;
  }
  const isBounce = kind.kind === "hard" && kind.reason === "bounce";
  if (isBounce) {
    const user_id = recipient.inbox?.user.id;
    await noteBounce(app, tx, { raw: delivery.raw, address: recipient.address, user_id });
  }
  if (!recipient.inbox) return isBounce ? ACCEPTED : REPORTS_ONLY;
  // Again, and now for good: between RCPT and here it may have been changed, deleted or given another address.
  const [inbox] = await inboxById(tx, { id: recipient.inbox.row.id });
  if (!inbox || !isAt(inbox, recipient.address)) {
    app.metrics.count("mailwright_mails_refused_total", { reason: "gone" });
    return GONE;
  }
  if (kind.kind === "hard") return skip(app, tx, { inbox, mail, reason: kind.reason });
  return decideSender(app, tx, decision, { row: inbox, user: recipient.inbox.user });
}

const GONE: Reception = { code: 550, enhanced: "5.1.1", text: "There is no such address here" };

function isAt(inbox: InboxRow, address: string): boolean {
  const { local_part, domain } = splitAddress(address);
  return inbox.local_part === local_part && inbox.domain === domain;
}

async function decideSender(
  app: App,
  tx: Db,
  decision: Decision,
  { row: inbox, user }: NonNullable<Recipient["inbox"]>,
): Promise<Reception> {
  const { mail, recipient } = decision;
  const { kind } = mail;
  if (mail.identity.authenticated) await liftSuppression(tx, user.id, mail.from_address);
  const verdict = judgeSender(inbox, user, {
    from_address: mail.from_address,
    authenticated: mail.identity.authenticated,
  });
  if (!verdict.accepted)
    return refuseSender(app, tx, { inbox, mail, delivery: decision.delivery, ...verdict });
  const policy = JSON.parse(inbox.inbound_policy) as InboundPolicy;
  const soft = kind.kind === "soft" ? kind.reason : null;
  if (soft !== null && !policy.process_bulk) return skip(app, tx, { inbox, mail, reason: soft });
  const vouched = isMeantFor(recipient.address, mail.identity, mail.headers);
  // What a machine sent, or what may be a replay, is read as anybody's mail is.
  const commands = soft === null && vouched;
  return route(
    app,
    tx,
    { ...decision, recipient: { ...recipient, inbox: { row: inbox, user } } },
    {
      authority: commands ? verdict.authority : withoutCommand(verdict.authority),
      no_reply_reason: soft ?? verdict.no_reply_reason,
      vouched,
    },
  );
}

async function refuseSender(
  app: App,
  tx: Db,
  refused: Pick<Decision, "delivery" | "mail"> & { inbox: InboxRow; reason: string; text: string },
): Promise<Reception> {
  const { inbox, mail, delivery, reason, text } = refused;
  const refusal = { code: 550, enhanced: "5.7.1", reason, text } as const;
  const { headers, from_address: sender, identity } = mail;
  app.metrics.count("mailwright_mails_refused_total", { reason });
  app.log.info({ reason, from: delivery.mail_from, peer: delivery.remote_address }, "mail refused");
  await logRefusal(app, tx, { inbox, refusal: { ...refusal, headers, sender, identity } });
  return refusal;
}

function withoutCommand(authority: Authority): Authority {
  return authority === "unauthenticated" ? authority : "stranger";
}

async function route(
  app: App,
  tx: Db,
  { recipient, mail, store, delivery }: Decision,
  verdict: { authority: Authority; no_reply_reason: string | null; vouched: boolean },
): Promise<Reception> {
  const { row: inbox, user } = recipient.inbox as NonNullable<Recipient["inbox"]>;
  const dedupe_key = dedupeKeyOf(mail);
  const { authority, no_reply_reason, vouched } = verdict;
  if (
    await countDuplicate(app, tx, { inbox_id: inbox.id, dedupe_key, authority, direct: mail.identity.direct })
  )
    return ACCEPTED;
  const { body_hash, from_address: sender, subject } = mail;
  const address = splitAddress(recipient.address);
  // Ids are seen by others and senders can be forged; the tag of a reply address was told to its participant alone.
  const parent_ids = authority === "unauthenticated" || !vouched ? [] : mail.parent_ids;
  const conversation_id =
    (await findThread(app, tx, inbox, { tag: address.tag, parent_ids, sender })) ?? null;
  const cap = await brokenCap(app, tx, { inbox_id: inbox.id, sender, authority, body_hash, conversation_id });
  if (cap !== null) return skip(app, tx, { inbox, mail, reason: "loop_cap", text: cap });
  const { row } = await acceptMail(app, tx, {
    inbox,
    user,
    source: "email",
    slot: false,
    tags: tagsOf(address),
    conversation_id,
    raw_mail_id: await store(),
    size: delivery.raw.byteLength,
    sender,
    subject,
    auth: { ...mail.identity.auth, vouched, trusted_network: mail.identity.trusted_network },
    rfc_message_id: mail.rfc_message_id,
    body_hash,
    dedupe_key,
    hop: mail.hop,
    authority,
    no_reply_reason,
  });
  addLogField("message_id", row.id);
  return ACCEPTED;
}

/** Taken, not worked on, and visible: machine mail and loops (decision L.5). */
async function skip(
  app: App,
  tx: Db,
  skipped: { inbox: InboxRow; mail: Examined; reason: string; text?: string },
): Promise<Reception> {
  const { inbox, mail, reason } = skipped;
  const rule = { limit: MAX_REFUSED_ROWS_PER_HOUR, window_seconds: HOUR_SECONDS };
  if (!app.limiter.take(`skipped:${inbox.id}`, rule).ok) return ACCEPTED;
  await logRefusedMail(app, tx, {
    inbox,
    state: "skipped",
    reason,
    error: skipped.text ?? reason,
    authority: mail.identity.authenticated ? "stranger" : "unauthenticated",
    sender: mail.from_address,
    subject: mail.subject,
    rfc_message_id: mail.rfc_message_id,
    auth: authOf(mail.identity),
    body_hash: mail.body_hash,
  });
  return ACCEPTED;
}

/** The raw mail is stored once, however many of our inboxes it is for, and not at all if none takes it. */
function storeOnce(app: App, tx: Db, raw: Buffer): () => Promise<string> {
  let stored: string | undefined;
  return async () => (stored ??= await storeRawMail(app, tx, raw));
}

/** Decision L.6: the Message-ID, or a hash of what makes a mail the same one. */
function dedupeKeyOf(mail: Examined): string {
  if (mail.rfc_message_id !== null) return dedupeKeyOfId(mail.rfc_message_id, mail.from_address);
  return sha256([mail.from_address, mail.headers.get("date") ?? "", mail.subject, mail.body_hash].join("\n"));
}

/** Of a mail without a body the subject is what is said. */
function bodyHash(body: Buffer, headers: MailHeaders): string {
  const blank = body.length < MAX_BLANK_BYTES && body.toString("latin1").trim() === "";
  return sha256(blank ? subjectOf(headers) : body);
}

function subjectOf(headers: MailHeaders): string {
  return decodeWords(headers.get("subject") ?? "").trim();
}

function idOf(headers: MailHeaders): string | null {
  return messageIds(headers.get("message-id") ?? "")[0] ?? null;
}

function sha256(data: string | Uint8Array): string {
  return createHash("sha256").update(data).digest("hex");
}
