import type { App } from "../app.ts";
import type { Storage } from "../resources/billing/storage.ts";
import type { StoredAuth } from "../resources/messages/stored-auth.ts";
import { approvalById } from "../resources/approvals/view.ts";
import { findThread } from "../resources/conversations/conversations.ts";
import type { Db } from "../db/database.ts";
import type { InboxRow, MessageRow, UserRow } from "../db/schema.ts";
import { splitAddress, tagsOf } from "../lib/mail-address.ts";
import { addLogField } from "../lib/log.ts";
import type { QueueLetter } from "../mail/writing/letters.ts";
import type { MailClass } from "../mail/reading/machine-mail.ts";
import { refusalFor, type RefusalReason } from "../reasons.ts";
import { liftSuppression } from "../mail/sending/suppressions.ts";
import { acceptMail, storeRawMail } from "./accept.ts";
import { noteBounce } from "./bounces.ts";
import type { Author, Examination } from "./examine.ts";
import { type BusyInbox, countInbound } from "./inbound-limits.ts";
import { type FullInbox, fullAnswer, withoutRoom } from "./mail-storage.ts";
import { leaveOut, traceDuplicate } from "./left-out.ts";
import { logRefusal, type Refusal, refusalOfSender, tellOfRefusals } from "./refusals.ts";
import { addTags } from "../resources/messages/tags.ts";
import { countRole, isNewToRole, refuseRole } from "./role-limits.ts";
import { brokenCap } from "./sender-caps.ts";
import { countAgain } from "./same-mail.ts";
import { type Junk, junkWords, spamWords } from "./spam-filter.ts";
import { changedSinceRcpt } from "./since-rcpt.ts";
import { casesOf, isOfHousehold, type Standing } from "./standing.ts";

/** One mail as it came over SMTP, whole, with the inboxes its recipients name. */
export interface Delivery {
  raw: Buffer;
  /** "" is the null reverse-path. */
  mail_from: string;
  helo: string;
  remote_address: string;
  recipients: Recipient[];
  /** Whether whoever hands it in hears what became of it for each recipient; over SMTP there is one answer for all. */
  answered_each?: true;
}

export interface Recipient {
  address: string;
  /**
   * Absent for a bounce address and for a role address. `storage` is that of the account when the recipient was named.
   */
  inbox?: { row: InboxRow; user: UserRow; storage: Storage };
  /** Set for `postmaster@` and `abuse@`; the letter takes the mail to the administrator. */
  role?: { administrator: UserRow; letter?: QueueLetter };
}

/** What the SMTP session answers. `code` 250 means: on disk and synced. */
export interface Reception {
  code: 250 | 421 | 450 | 451 | 452 | 550 | 552 | 554;
  enhanced: string;
  text: string;
  /** If a limit is the reason: what the operator may change, such as a configuration key. */
  limit?: string;
  /** If storage is the reason: the inboxes whose accounts have no room. */
  full?: FullInbox[];
  /** If a rate limit is the reason: the inboxes that take no more for now. */
  busy?: BusyInbox[];
  /**
   * The answer for each address, if one transaction had several recipients: SMTP has only one answer for all of them.
   */
  each?: Map<string, Reception>;
}

/** What is known about a mail once it was examined, for all of its recipients. */
export interface Examined extends Omit<Examination, "fault" | "author" | "marks"> {
  from_address: string;
  identity: Author["identity"];
  meant: Author["meant"];
  kind: MailClass;
  /** The spam filter's verdict; absent or null for none. */
  junk?: Junk | null;
}

export const ACCEPTED: Reception = { code: 250, enhanced: "2.6.0", text: "Message accepted" };

/**
 * Returns the reply for the whole SMTP transaction: 250 as soon as one recipient took the mail, otherwise the first
 * refusal. While one of the inboxes takes no more or has no room, it is 451 or 452, and nothing is stored. This is
 * decided here, in the database transaction, because only here it is certain which mails have been here before.
 */
export async function decideForAll(app: App, tx: Db, delivery: Delivery, mail: Examined): Promise<Reception> {
  const cases = await casesOf(app, tx, delivery, mail);
  const changed = changedSinceRcpt(cases);
  if (changed) return changed;
  const standings = cases.flatMap(({ standing }) => standing ?? []);
  const full = isBounce(mail) ? [] : await withoutRoom(app, tx, delivery.raw.byteLength, cases);
  if (full[0]) return { ...fullAnswer(full[0].address, full[0]), full };
  const later = count(app, tx, { delivery, mail, standings });
  if (later) return later;
  const refused: string[] = [];
  const whole = { delivery, mail, store: storeOnce(app, tx, delivery.raw), taken: new Map(), refused };
  const each = new Map<string, Reception>();
  for (const { recipient, standing } of cases)
    each.set(recipient.address, await decide(app, tx, { ...whole, recipient, standing }));
  const answers = [...each.values()];
  const answer = answers.find(({ code }) => code === 250) ?? answers[0] ?? refusalFor("gone");
  if (answer.code === 250) await tellOfRefusals(app, tx, { delivery, mail, refused });
  return each.size > 1 ? { ...answer, each } : answer;
}

/** Counts a mail against the limits of the operator and of its inboxes; a mail that is put off counts against none. */
function count(
  app: App,
  tx: Db,
  { delivery, mail, standings }: { delivery: Delivery; mail: Examined; standings: Standing[] },
): Reception | undefined {
  const has_letter = delivery.recipients.some(({ role }) => role?.letter);
  const busy = has_letter ? refuseRole(app, delivery, mail) : undefined;
  const later = busy ?? (isBounce(mail) ? undefined : countInbound(app, tx, { mail, standings }));
  if (has_letter && later === undefined) countRole(app, tx, delivery, mail);
  return later;
}

interface Decision {
  delivery: Delivery;
  recipient: Recipient;
  /** Undefined for an address that is not, or no longer, an inbox. */
  standing: Standing | undefined;
  mail: Examined;
  store: () => Promise<string>;
  /**
   * By inbox, the message that this same mail has become for another recipient: one inbox may be named with several
   * tags.
   */
  taken: Map<string, Pick<MessageRow, "id" | "vouched">>;
  /** The messages that show that it was refused for a recipient; grows. */
  refused: string[];
}

async function decide(app: App, tx: Db, decision: Decision): Promise<Reception> {
  const { mail, recipient, delivery, standing } = decision;
  if (recipient.role) {
    if (isNewToRole(app, tx, { address: recipient.address, mail })) await recipient.role.letter?.(tx);
    else dropMail(app, delivery, "role_again");
    return ACCEPTED;
  }
  const user_id = recipient.inbox?.user.id;
  const known = await noteBounce(app, tx, { bounce: mail.bounce, address: recipient.address, user_id });
  if (!recipient.inbox) {
    if (!known && !isBounce(mail)) return refuseOthers(app, delivery);
    if (!known) dropMail(app, delivery, "bounce");
    return ACCEPTED;
  }
  if (!standing) {
    noteRefusal(app, delivery, "gone");
    return refusalFor("gone");
  }
  if (mail.kind.kind === "hard") return skip(app, tx, { standing, mail, reason: mail.kind.reason });
  return decideSender(app, tx, { ...decision, standing });
}

export function isBounce({ kind }: Pick<Examined, "kind">): boolean {
  return kind.kind === "hard" && kind.reason === "bounce";
}

/** Logs a refusal. Its sender may not learn of it, if another recipient took the mail. */
function refuseOthers(app: App, delivery: Delivery): Reception {
  noteRefusal(app, delivery, "reports_only");
  return refusalFor("reports_only");
}

type Client = Pick<Delivery, "mail_from" | "remote_address"> & Partial<Pick<Delivery, "recipients">>;

/**
 * Returns the fields of each log line about a mail: who sent it, and the inboxes it is for, as far as these are known.
 */
export function logFieldsOf({ mail_from, remote_address, recipients = [] }: Client): object {
  const inbox_ids = recipients.flatMap(({ inbox }) => inbox?.row.id ?? []);
  return {
    from: mail_from,
    peer: remote_address,
    ...(inbox_ids.length === 0 ? {} : { inbox_ids }),
  };
}

export function noteRefusal(app: App, client: Client, reason: RefusalReason): void {
  app.metrics.count("mailwright_mails_refused_total", { reason });
  app.log.info({ reason, ...logFieldsOf(client) }, "mail refused");
}

/** Returns the reason for which a mail that could have been taken was put off. */
export function putOffReason({ code }: Pick<Reception, "code">): RefusalReason {
  if (code === 450) return "inbox_paused";
  return code === 452 ? "storage_full" : "rate_limited";
}

/** Counts and logs a mail that was put off; `limit` names the limit, if one was the reason. */
export function notePutOff(
  app: App,
  client: Client,
  { reason, limit }: { reason: RefusalReason; limit?: string | undefined },
): void {
  app.metrics.count("mailwright_mails_refused_total", { reason });
  app.log.info({ reason, limit, ...logFieldsOf(client) }, "mail put off");
}

async function decideSender(
  app: App,
  tx: Db,
  decision: Decision & { standing: Standing },
): Promise<Reception> {
  const { mail, standing, delivery, refused } = decision;
  const { inbox, user, verdict, soft } = standing;
  if (mail.identity.authenticated) await liftSuppression(tx, user.id, mail.from_address);
  if (!verdict.accepted) return refuseSender(app, tx, { inbox, mail, delivery, refused, ...verdict });
  if (standing.unproven) return refuseSender(app, tx, { inbox, mail, delivery, refused, ...NOTHING_PROVEN });
  if (mail.junk && !isOfHousehold(standing))
    return mail.junk.verdict === "refuse"
      ? refuseSender(app, tx, { inbox, mail, delivery, refused, reason: "spam", shown: spamWords(mail.junk) })
      : skip(app, tx, { standing, mail, reason: "junk", text: junkWords(mail.junk) });
  if (soft !== null && standing.skipped) return skip(app, tx, { standing, mail, reason: soft });
  return acceptNew(app, tx, decision, soft ?? verdict.no_reply_reason);
}

const NOTHING_PROVEN = {
  ...refusalFor("sender_unauthenticated"),
  shown:
    "It was refused, because nothing shows that it is from its sender: anybody can write any name into a mail, and each would cost a run. Turn on “Work on mail whose sender proves nothing” of the inbox if you want such mail read.",
};

async function refuseSender(
  app: App,
  tx: Db,
  given: Pick<Decision, "delivery" | "mail" | "refused"> &
    Pick<Refusal, "reason" | "shown"> & { inbox: InboxRow },
): Promise<Reception> {
  const { inbox, mail, delivery, reason, refused } = given;
  const refusal = refusalOfSender(app, delivery, given);
  const { subject, rfc_message_id, from_address: sender, identity } = mail;
  noteRefusal(app, delivery, reason);
  const known = { ...refusal, subject, rfc_message_id, sender, identity };
  const row = await logRefusal(app, tx, { inbox, refusal: known });
  if (row) refused.push(row.id);
  return refusal;
}

const NO_THREAD = { conversation_id: null, approval_id: null };

async function acceptNew(
  app: App,
  tx: Db,
  { recipient, mail, store, standing, taken, delivery }: Decision & { standing: Standing },
  no_reply_reason: string | null,
): Promise<Reception> {
  const { inbox, user, authority, vouched, dedupe_key, body_hash, failed_before } = standing;
  const { original } = standing;
  const tags = tagsOf(splitAddress(recipient.address));
  if (original) {
    // A server may bring a mail for two tags of one inbox twice, once for each.
    if (vouched && original.id !== null) await addTags(tx, { id: original.id, tags });
    await traceDuplicate(app, tx, { standing, mail, original });
    return ACCEPTED;
  }
  const copy = taken.get(inbox.id);
  if (copy) {
    // Whoever sends the owner's mail on chooses its other recipients.
    if (vouched || copy.vouched === 0) await addTags(tx, { id: copy.id, tags });
    await countAgain(tx, copy);
    return ACCEPTED;
  }
  const { from_address: sender, subject } = mail;
  const { decides, ...thread } = await threadFor(app, tx, { recipient, mail, standing });
  const { conversation_id } = thread;
  const weighed = { inbox_id: inbox.id, sender, authority, vouched, body_hash, conversation_id, decides };
  const cap = await brokenCap(app, tx, weighed);
  // What the owner or a listed sender wrote is kept whole: they may have written so often themselves.
  if (cap !== null && (!isOfHousehold(standing) || standing.left_out))
    return skip(app, tx, { standing, mail, reason: "loop_cap", text: cap });
  const { row } = await acceptMail(app, tx, {
    key_id: null,
    inbox,
    user,
    source: "email",
    slot: false,
    tags,
    ...thread,
    raw_mail_id: await store(),
    size: delivery.raw.byteLength,
    sender,
    subject,
    auth: { ...authOf(mail, recipient, standing), ...(conversation_id !== null && { in_thread: true }) },
    rfc_message_id: mail.rfc_message_id,
    body_hash,
    dedupe_key,
    failed_before,
    vouched,
    hop: mail.hop,
    authority,
    no_reply_reason,
    over_cap: cap,
  });
  taken.set(inbox.id, row);
  addLogField("message_id", row.id);
  return ACCEPTED;
}

/** Returns the thread of a mail, and whether it answers a request for consent that waits, with no mark of a machine in it. */
async function threadFor(
  app: App,
  tx: Db,
  {
    recipient,
    mail,
    standing: { inbox, user, authority, vouched },
  }: Pick<Decision, "recipient" | "mail"> & { standing: Standing },
): Promise<{ conversation_id: string | null; approval_id: string | null; decides: boolean }> {
  const { tag } = splitAddress(recipient.address);
  // A conversation is not found by Message-IDs if the sender is not proven: others see ids, and senders can be forged.
  // The tag of a reply address was told to its participant alone.
  const parent_ids = authority === "unauthenticated" || !vouched ? [] : mail.parent_ids;
  const found = await findThread(app, tx, inbox, { tag, parent_ids, sender: mail.from_address });
  const { conversation_id, approval_id } = found ?? NO_THREAD;
  if (approval_id === null || authority !== "owner" || mail.kind.kind !== "person")
    return { conversation_id, approval_id, decides: false };
  const [approval] = await approvalById(tx, { id: approval_id, user_id: user.id });
  return { conversation_id, approval_id, decides: approval?.state === "pending" };
}

/** Returns the results of the checks as they are stored with a message (see `StoredAuth`). */
function authOf(
  { identity, meant }: Examined,
  { address }: Recipient,
  { vouched, undated, for_others }: Standing,
): Record<string, unknown> {
  const kept: StoredAuth = {
    vouched,
    ...(undated && { undated }),
    ...(for_others !== null && { for_others }),
    ...(!vouched && { lacks_dmarc: identity.lacks_dmarc }),
    ...(identity.direct && !meant.has(address) && { unnamed: true }),
  };
  const signed_form = meant.get(address) ?? undefined;
  return { ...identity.auth, ...kept, trusted_network: identity.trusted_network, signed_form };
}

async function skip(app: App, tx: Db, skipped: Parameters<typeof leaveOut>[2]): Promise<Reception> {
  await leaveOut(app, tx, skipped);
  return ACCEPTED;
}

/** Counts and logs a mail that was taken and that no account sees anything of. */
export function dropMail(
  app: App,
  client: Client,
  reason: "bounce" | "role_again" | "role_machine" | "role_report",
): void {
  app.metrics.count("mailwright_mails_dropped_total", { reason });
  app.log.info({ reason, ...logFieldsOf(client) }, "mail dropped");
}

/**
 * Returns a function that stores the raw mail when it is first called: once, however many inboxes take it, and not at
 * all if none does.
 */
function storeOnce(app: App, tx: Db, raw: Buffer): () => Promise<string> {
  let stored: string | undefined;
  return async () => (stored ??= await storeRawMail(app, tx, raw));
}
