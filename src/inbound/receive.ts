import { isLong } from "../db/long-bytes.ts";
import { userById } from "../db/users.ts";
import type { App } from "../app.ts";
import { storageOf } from "../resources/billing/storage.ts";
import { isOwnDomain } from "../resources/domains/domains.ts";
import { addressOf, findInboxByAddress } from "../resources/inboxes/addresses.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { sizeInWords } from "../lib/sizes.ts";
import { inNetworks } from "../net/networks.ts";
import { isLarge } from "../lib/threads-by-size.ts";
import type { WorkOutcome } from "../lib/worker-pool.ts";
import { senderParty } from "../mail/reading/front-relay.ts";
import { headerBytes } from "../mail/reading/header-block.ts";
import { refusalFor, type RefusalReason } from "../reasons.ts";
import { classifyMail } from "../mail/reading/machine-mail.ts";
import { noteBounce } from "./bounces.ts";
import {
  ACCEPTED,
  decideForAll,
  type Delivery,
  dropMail,
  type Examined,
  isBounce,
  notePutOff,
  putOffReason,
  noteRefusal,
  type Reception,
  type Recipient,
} from "./decide.ts";
import {
  type Author,
  type Examination,
  examineMail,
  isQuickToExamine,
  type MailToExamine,
  type Noting,
} from "./examine.ts";
import { examineByNotes } from "./examine-noted.ts";
import { tellOfFull } from "./full-inbox.ts";
import { rememberBusy } from "./inbound-limits.ts";
import { mayStore } from "./may-store.ts";
import { rememberFull } from "./mail-storage.ts";
import { logRefusal, type Refusal } from "./refusals.ts";
import { findRole, noteReport, prepareRoleMail } from "./role-mail.ts";
import { askSpamFilter } from "./spam-filter.ts";
import { isOwnMessageId, outgoingOfBounce } from "../mail/writing/own-ids.ts";

export type { Delivery, Reception, Recipient } from "./decide.ts";

/** Returns what a recipient names: an inbox, a bounce address or a role address; undefined for anything else. */
export async function findRecipient(app: App, address: string): Promise<Recipient | undefined> {
  const parts = splitAddress(address);
  if (outgoingOfBounce(app, parts) !== undefined)
    return (await isOwnDomain(app, parts.domain)) ? { address } : undefined;
  const administrator = await findRole(app, address);
  if (administrator) return { address, role: { administrator } };
  const row = await findInboxByAddress(app.db, parts);
  if (!row) return undefined;
  const [user] = await userById(app.db, { id: row.user_id });
  return user && { address, inbox: { row, user, storage: await storageOf(app, app.db, user) } };
}

/** Decides about a mail and, where it is accepted, stores it: raw mail, verdicts and job in one synced commit. */
export async function receiveMail(app: App, delivery: Delivery): Promise<Reception> {
  const examination = await examine(app, delivery);
  if ("code" in examination) return putOff(app, delivery, { reason: "unreadable", answer: examination });
  const { fault, author, subject, rfc_message_id } = examination;
  if (fault !== null) return refuse(app, delivery, { ...fault, subject, rfc_message_id });
  if (author === null) return takeNotification(app, delivery, examination);
  if (author.identity.problem === "temporary")
    return putOff(app, delivery, { reason: "dns_unanswered", answer: refusalFor("dns_unanswered") });
  const mail = await judge(app, delivery, { ...examination, author });
  const { identity, from_address: sender } = mail;
  const known = { subject, rfc_message_id, sender, identity };
  if (identity.dmarc_reject && !isBounce(mail)) return refuse(app, delivery, { ...DMARC_REJECTED, ...known });
  const recipients = await prepareRoleMail(app, delivery, mail);
  if ("code" in recipients)
    return recipients.code < 500
      ? putOff(app, delivery, { reason: putOffReason(recipients), answer: recipients })
      : refuse(app, delivery, { ...recipients, reason: "too_large", ...known });
  const junk = await askSpamFilter(app, delivery, mail);
  const [given, found] = [
    { ...delivery, recipients },
    { ...mail, junk },
  ];
  const stores = isLong(delivery.raw) ? await mayStore(app, given, found) : [];
  const answer = await app.write((tx) => decideForAll(app, tx, given, found), { stores });
  if (answer.code === 250 || answer.code >= 500) return answer;
  await noteWhom(app, delivery, answer, known);
  return putOff(app, delivery, { reason: putOffReason(answer), answer });
}

/** Remembers for which of its recipients a mail was put off, and tells the owners who have no room. */
async function noteWhom(
  app: App,
  delivery: Delivery,
  { full = [], busy = [] }: Reception,
  known: Omit<Parameters<typeof tellOfFull>[2], "size">,
): Promise<void> {
  // A mail for one recipient is weighed anew each time: what others sent by the same client must not be held against
  // it.
  const several = delivery.recipients.length > 1;
  if (several) for (const inbox of busy) rememberBusy(app, inbox, delivery);
  for (const inbox of full) {
    if (several) rememberFull(app, inbox, delivery);
    await tellOfFull(app, inbox, { ...known, size: delivery.raw.byteLength });
  }
}

/** Returns the sentence for a mail that is too large, whether that is known before or after it arrives. */
export function tooLargeWords(max_message_bytes: number): string {
  return `The mail is larger than ${sizeInWords(max_message_bytes)}, the most that this server takes.`;
}

/** Refuses a mail that is larger than `smtp.max_message_bytes`; its text was never kept. */
export async function refuseOversize(app: App, delivery: Omit<Delivery, "raw">): Promise<Reception> {
  const text = tooLargeWords(app.config.smtp.max_message_bytes);
  return refuse(app, { ...delivery, raw: Buffer.alloc(0) }, refusalFor("too_large", text));
}

/**
 * Examines a mail. If that takes longer than a moment, it is done on a thread that can be ended, so that no mail holds
 * up the others.
 */
async function examine(app: App, delivery: Delivery): Promise<Examination | Reception> {
  const { raw, mail_from, helo, remote_address, recipients } = delivery;
  const { smtp, dns } = app.config;
  const { hostname, trusted_relays, arc_sealers } = smtp;
  const known = {
    hostname,
    dns: { servers: dns.servers, counts: app.dns_counts },
    trusted_relays,
    arc_sealers,
  };
  const trusted = inNetworks(remote_address, smtp.trusted_networks);
  const mail = {
    raw,
    mail_from,
    inboxes: recipients.filter(({ inbox }) => inbox).map(({ address }) => address),
    to_role: recipients.some(({ role }) => role),
    client: trusted ? null : { remote_address, helo, ...known },
  };
  const about = { bytes: raw.length, from: mail_from, peer: remote_address };
  try {
    if (isQuickToExamine(mail)) return await examineMail(mail, () => app.resolver);
    const who = senderParty(delivery, trusted_relays);
    const outcome = await examineOnThread(app, who, mail);
    if (outcome.ok) return noteVerifierFault(app, outcome.output, about);
    const { problem } = outcome;
    app.log.warn(
      { problem, ...about },
      "a mail could not be read in time; its sender was asked to try again",
    );
    return TOO_LONG_TO_READ;
  } catch (error) {
    app.log.error({ err: error, ...about }, "a mail could not be read; its sender was asked to try again");
    return refusalFor("unreadable");
  }
}

function examineOnThread(app: App, who: string, mail: MailToExamine): Promise<WorkOutcome<Examination>> {
  const run = (raw: Uint8Array, noting?: Noting) =>
    app.examiner.run({ who, bytes: raw.length }, () => {
      const copy = new Uint8Array(raw);
      return { input: { ...mail, raw: copy, ...(noting && { noting }) }, transfer: [copy.buffer] };
    });
  const { raw, client } = mail;
  const head = raw.subarray(0, headerBytes(raw));
  // Mail of a trusted client asks nothing of the DNS, and one with so long a header is not read by notes.
  if (client === null || !isLarge(raw.length) || isLarge(head.length)) return run(raw);
  return examineByNotes((part, notes) => run(part === "head" ? head : raw, { part, notes }));
}

function noteVerifierFault(app: App, examination: Examination, about: object): Examination {
  const fault = examination.author?.identity.verifier_fault;
  if (fault !== undefined) app.log.info({ fault, ...about }, "the signatures of a mail could not be checked");
  return examination;
}

const TOO_LONG_TO_READ = refusalFor(
  "unreadable",
  "The mail could not be read in the time that one may take; please send it in a simpler form, or try again later",
);
const DMARC_REJECTED = {
  ...refusalFor(
    "auth_failed",
    "The mail fails DMARC, and the policy of the sender's domain asks to reject it",
  ),
  // RFC 7372 §3.2.
  enhanced: "5.7.26",
};

async function takeNotification(
  app: App,
  delivery: Delivery,
  { bounce, report }: Pick<Examination, "bounce" | "report">,
): Promise<Reception> {
  if (report !== null) noteReport(app, report);
  await app.write(async (tx) => {
    for (const { address, role } of delivery.recipients) {
      const known = role ? report !== null : await noteBounce(app, tx, { bounce, address });
      if (!known) dropMail(app, delivery, role ? "role_report" : "bounce");
    }
  });
  return ACCEPTED;
}

/** Refuses for every recipient, and says so in the activity of each inbox. */
async function refuse(app: App, delivery: Delivery, refusal: Refusal): Promise<Reception> {
  await app.write(async (tx) => {
    for (const { inbox } of delivery.recipients) {
      if (inbox) await logRefusal(app, tx, { inbox: inbox.row, refusal });
    }
  });
  noteRefusal(app, delivery, refusal.reason);
  return { code: refusal.code, enhanced: refusal.enhanced, text: refusal.text };
}

function putOff(
  app: App,
  delivery: Delivery,
  { reason, answer }: { reason: RefusalReason; answer: Reception },
): Reception {
  notePutOff(app, delivery, { reason, limit: answer.limit });
  return answer;
}

/**
 * Returns whether mail from an address can only be our own: it is that of an inbox, or of the server's own letters.
 * Other people of a domain, even the service's, may have their mail elsewhere and write to any inbox.
 */
async function isOwnAddress(app: App, address: string): Promise<boolean> {
  const parts = splitAddress(address);
  if (address === `mailwright@${app.config.smtp.domain}`) return true;
  return (await isOwnDomain(app, parts.domain)) && (await findInboxByAddress(app.db, parts)) !== undefined;
}

async function judge(
  app: App,
  { recipients }: Delivery,
  { author, marks, ...found }: Examination & { author: Author },
): Promise<Examined> {
  const { address, identity, meant } = author;
  const is_own_address =
    (await isOwnAddress(app, address)) ||
    recipients.some(({ inbox }) => inbox && addressOf(inbox.row) === address);
  const kind = classifyMail(marks, { is_own_address, own_message_id: (id) => isOwnMessageId(app, id) });
  return { ...found, from_address: address, identity, meant, kind };
}
