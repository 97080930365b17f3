import type { App } from "../app.ts";
import { remembered } from "../db/prepared.ts";
import { isOwnDomain } from "../domains/domains.ts";
import { addressOf, findInboxByAddress, outgoingOfBounce } from "../inboxes/addresses.ts";
import { splitAddress } from "../lib/mail-address.ts";
import { authenticateSender } from "../mail/authenticate.ts";
import { inNetworks } from "../lib/networks.ts";
import {
  fromMailbox,
  MAX_RECEIVED_FIELDS,
  type MailHeaders,
  readHeaders,
  receivedCount,
} from "../mail/headers.ts";
import { classifyMail } from "../mail/machine-mail.ts";
import { noteBounce } from "./bounces.ts";
import {
  ACCEPTED,
  decideForAll,
  type Delivery,
  dropMail,
  type Examined,
  isBounce,
  logRefusal,
  type Reception,
  type Recipient,
  type Refusal,
  readExamined,
} from "./decide.ts";
import { takeDomainReport } from "./domain-reports.ts";
import { findRole, prepareRoleMail } from "./role-mail.ts";
import { repeatedField } from "./vouched.ts";
import { isOwnMessageId } from "../mail/outgoing.ts";

export type { Delivery, Reception, Recipient } from "./decide.ts";

/** Part of a reply line, which may not be longer than 512 octets (RFC 5321 §4.5.3.1.5). */
const MAX_PROBLEM_CHARS = 300;

/** The inbox, the bounce address or the role address that a recipient names; undefined for anything else. */
export async function findRecipient(app: App, address: string): Promise<Recipient | undefined> {
  const parts = splitAddress(address);
  if (outgoingOfBounce(app, parts) !== undefined)
    return (await isOwnDomain(app, parts.domain)) ? { address } : undefined;
  const administrator = await findRole(app, address);
  if (administrator) return { address, role: { administrator } };
  const row = await findInboxByAddress(app.db, parts);
  if (!row) return undefined;
  const [user] = await userById(app.db, { id: row.user_id });
  return user && { address, inbox: { row, user } };
}

const userById = remembered((db, key: { id: string }) =>
  db.selectFrom("users").selectAll().where("id", "=", key.id),
);

/** Decides about a mail and, where it is accepted, stores it: raw mail, verdicts and job in one synced commit. */
export async function receiveMail(app: App, delivery: Delivery): Promise<Reception> {
  const headers = readHeaders(delivery.raw);
  const malformed = await refuseMalformed(app, delivery, headers);
  if (malformed) return malformed;
  if (isNotification(delivery)) return takeNotification(app, delivery, headers);
  const from = fromMailbox(headers);
  if (!from.ok) {
    const text = from.problem.slice(0, MAX_PROBLEM_CHARS);
    return refuse(app, delivery, { ...NO_SINGLE_FROM, text, headers });
  }
  const identity = await identify(app, delivery, { headers, from_address: from.address });
  if (identity.problem === "temporary")
    return putOff(app, delivery, { reason: "dns_unanswered", answer: UNDECIDED });
  const from_us = await isOwnAddress(app, from.address);
  const mail = examine(app, delivery, { headers, from_address: from.address, identity, from_us });
  if (identity.dmarc_reject && !isBounce(mail))
    return refuse(app, delivery, { ...DMARC_REJECTED, headers, sender: from.address, identity });
  const recipients = await prepareRoleMail(app, delivery, mail);
  if ("code" in recipients)
    return recipients.code < 500
      ? putOff(app, delivery, { reason: "rate_limited", answer: recipients })
      : refuse(app, delivery, {
          ...recipients,
          reason: "too_large",
          headers,
          sender: from.address,
          identity,
        });
  const answer = await app.write((tx) => decideForAll(app, tx, { ...delivery, recipients }, mail));
  return answer.code === 451 ? putOff(app, delivery, { reason: "rate_limited", answer }) : answer;
}

/** A mail that is larger than `smtp.max_message_bytes`, of which the text was never kept. */
export async function refuseOversize(app: App, delivery: Omit<Delivery, "raw">): Promise<Reception> {
  const text = `The mail is larger than ${app.config.smtp.max_message_bytes} bytes, the most this server takes.`;
  return refuse(app, { ...delivery, raw: Buffer.alloc(0) }, { ...TOO_LARGE, text });
}

const UNDECIDED: Reception = {
  code: 451,
  enhanced: "4.7.0",
  text: "The sender's address cannot be checked because DNS does not answer; please try again later",
};
const MALFORMED = { code: 550, enhanced: "5.6.0", reason: "malformed_header" } as const;
const REPEATED = { code: 550, enhanced: "5.6.0", reason: "repeated_field" } as const;
const TOO_LARGE = { code: 552, enhanced: "5.3.4", reason: "too_large" } as const;
const NO_SINGLE_FROM = { code: 550, enhanced: "5.6.0", reason: "bad_from" } as const;
const LOOPING = {
  code: 554,
  enhanced: "5.4.6",
  reason: "loop",
  text: `The mail has passed more than ${MAX_RECEIVED_FIELDS} servers; it is going round in circles`,
} as const;
const LONG_HEADERS = {
  code: 552,
  enhanced: "5.3.4",
  reason: "too_large",
  text: "The header section of the mail is larger than 64 KB",
} as const;
const DMARC_REJECTED = {
  code: 550,
  enhanced: "5.7.26",
  reason: "auth_failed",
  text: "The mail fails DMARC, and the policy of the sender's domain asks to reject it",
} as const;

async function refuseMalformed(
  app: App,
  delivery: Delivery,
  headers: MailHeaders,
): Promise<Reception | undefined> {
  if (!headers.complete) return refuse(app, delivery, LONG_HEADERS);
  if (headers.problem !== null)
    return refuse(app, delivery, {
      ...MALFORMED,
      text: `The header of the mail is malformed: ${headers.problem} (RFC 5322 section 2.2). Send it again from another mail program`,
      headers,
    });
  const repeated = repeatedField(headers);
  if (repeated !== undefined)
    return refuse(app, delivery, {
      ...REPEATED,
      text: `The mail has more than one ${repeated} field (RFC 5322 section 3.6)`,
      headers,
    });
  if (receivedCount(headers) > MAX_RECEIVED_FIELDS) return refuse(app, delivery, { ...LOOPING, headers });
  return undefined;
}

/** RFC 5321 §4.5.5. Who wrote it does not matter, and its From often names nobody (`From: MAILER-DAEMON`). */
function isNotification({ mail_from, recipients }: Delivery): boolean {
  return mail_from === "" && recipients.every(({ inbox }) => inbox === undefined);
}

async function takeNotification(app: App, delivery: Delivery, headers: MailHeaders): Promise<Reception> {
  const { raw, recipients } = delivery;
  const reported = recipients.some(({ role }) => role) && (await takeDomainReport(app, { raw, headers }));
  await app.write(async (tx) => {
    for (const { address, role } of recipients) {
      const known = role ? reported : await noteBounce(app, tx, { raw, address });
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
  app.metrics.count("mailwright_mails_refused_total", { reason: refusal.reason });
  app.log.info(
    { reason: refusal.reason, from: delivery.mail_from, peer: delivery.remote_address },
    "mail refused",
  );
  return { code: refusal.code, enhanced: refusal.enhanced, text: refusal.text };
}

function putOff(
  app: App,
  { mail_from, remote_address }: Delivery,
  { reason, answer }: { reason: string; answer: Reception },
): Reception {
  app.metrics.count("mailwright_mails_refused_total", { reason });
  app.log.info({ reason, from: mail_from, peer: remote_address }, "mail put off");
  return answer;
}

async function identify(
  app: App,
  delivery: Delivery,
  mail: { headers: MailHeaders; from_address: string },
): Promise<Examined["identity"]> {
  if (inNetworks(delivery.remote_address, app.config.smtp.trusted_networks)) {
    const auth = { spf: "none", dkim: "none", dmarc: "none", aligned: false };
    return {
      authenticated: true,
      auth,
      dmarc_reject: false,
      direct: true,
      signed: [],
      trusted_network: true,
    };
  }
  const identity = await authenticateSender({
    raw: delivery.raw,
    headers: mail.headers,
    from: { address: mail.from_address },
    remote_address: delivery.remote_address,
    helo: delivery.helo,
    mail_from: delivery.mail_from,
    hostname: app.config.smtp.hostname,
    resolver: app.resolver,
    trusted_relays: app.config.smtp.trusted_relays,
    arc_sealers: app.config.smtp.arc_sealers,
  });
  return { ...identity, trusted_network: false };
}

/**
 * Whether mail from an address can only be our own: from any of the service's domain, and of the domains of the accounts
 * from their inboxes and from whatever is nobody's. A person who signed up with such an address does get mail there; and
 * where nobody has to prove a domain, it must not silence those who write from it.
 */
async function isOwnAddress(app: App, address: string): Promise<boolean> {
  const parts = splitAddress(address);
  if (parts.domain === app.config.smtp.domain) return true;
  if (!(await isOwnDomain(app, parts.domain))) return false;
  if (await findInboxByAddress(app.db, parts)) return true;
  if (app.config.domains.verification === "trust") return false;
  const person = app.db.selectFrom("users").select("id").where("email", "=", address);
  return (await person.where("email_verified", "=", 1).executeTakeFirst()) === undefined;
}

function examine(
  app: App,
  delivery: Delivery,
  { from_us, ...mail }: Pick<Examined, "headers" | "from_address" | "identity"> & { from_us: boolean },
): Examined {
  const own = new Set(delivery.recipients.map(({ inbox }) => inbox && addressOf(inbox.row)));
  const kind = classifyMail({
    headers: mail.headers,
    mail_from: delivery.mail_from,
    from_address: mail.from_address,
    is_own_address: (address) => from_us || own.has(address),
    own_message_id: (id) => isOwnMessageId(app, id),
  });
  return { ...mail, ...readExamined(delivery.raw, mail.headers), kind };
}
