import { refusalFor } from "../reasons.ts";
import type { DnsNotes } from "../net/dns-notes.ts";
import type { DnsCounts } from "../net/dns-standing.ts";
import type { Resolver } from "../net/dns.ts";
import { authenticateSender, type Identity } from "../mail/reading/authenticate.ts";
import type { DomainReport } from "./domain-report.ts";
import { headerBytes } from "../mail/reading/header-block.ts";
import {
  fromMailbox,
  MAX_RECEIVED_FIELDS,
  type MailHeaders,
  readHeaders,
  receivedCount,
} from "../mail/reading/headers.ts";
import {
  isComplaint,
  type MachineMarks,
  machineMarks,
  MAX_SCAN_CHARS,
} from "../mail/reading/machine-mail.ts";
import { type BounceReport, readBounce } from "../mail/reading/plain-bounce.ts";
import type { SignedForm } from "../mail/reading/signed-form.ts";
import { type WriterMarks, writerMarks } from "./for-others.ts";
import { type MailWords, readMailWords } from "./mail-words.ts";
import { readingFor, repeatedField } from "./vouched.ts";

/** Bytes above which a mail, or its header, is read on a thread, whoever brought it. */
const SHORT_MAIL_BYTES = 65_536;
const SHORT_HEADER_BYTES = 8_192;
/** Characters of a problem: part of a reply line, which has at most 512 octets (RFC 5321 §4.5.3.1.5). */
const MAX_PROBLEM_CHARS = 300;

/** A received mail, and what must be known to judge it. Plain data, because it is sent to another thread. */
export interface MailToExamine {
  raw: Uint8Array;
  /** "" is the null reverse-path. */
  mail_from: string;
  /** The addresses of inboxes among its recipients. */
  inboxes: string[];
  /** Whether one of its recipients is a role address. */
  to_role: boolean;
  /** The client; null for one in a trusted network, which is believed whatever it says. */
  client: Client | null;
  /** See `examineByNotes`. */
  noting?: Noting;
}

/** How the DNS is asked for a mail that is read with notes (see `examineByNotes`). */
export interface Noting {
  notes: DnsNotes;
  /**
   * `head`: the mail is only its header, and the DNS is asked. `whole`: the mail is complete, and only the notes are
   * asked.
   */
  part: "head" | "whole";
}

/** The client that brought the mail, and how its mail is checked. */
export interface Client {
  remote_address: string;
  helo: string;
  hostname: string;
  dns: AskedDns;
  trusted_relays: string[];
  arc_sealers: string[];
}

/** Which name servers to ask, and where to count their answers. */
export interface AskedDns {
  servers: string[];
  counts: DnsCounts;
}

/** A reason to refuse a mail, whoever wrote it and whoever it is for. */
export type MailFault = ReturnType<
  typeof refusalFor<"bad_from" | "loop" | "malformed_header" | "repeated_field" | "too_large">
>;

/** All that has to be known about a mail for the decision. */
export interface Examination extends MailWords {
  fault: MailFault | null;
  /** Null for a mail with a fault, and for a notification, whose author does not matter. */
  author: Author | null;
  marks: MachineMarks;
  writer_marks: WriterMarks;
  /** What a mail system may report on one of our mails. */
  bounce: BounceReport | null;
  /** What a mail to a role address reports. */
  report: DomainReport | null;
  /** Whether a mail to a role address complains of mail from here. */
  complaint: boolean;
  /** The DNS answers that the mail was read with, if it was read with notes. */
  notes?: DnsNotes;
}

export interface Author {
  address: string;
  identity: Identity & { trusted_network: boolean };
  /**
   * By address, the inboxes that the author meant the mail for, each with the part of the mail that must be read; null
   * for all of it.
   */
  meant: Map<string, SignedForm | null>;
}

/**
 * Returns whether a mail is a delivery notification (RFC 5321 §4.5.5). It does not matter who wrote it, and its From
 * often names nobody (`From: MAILER-DAEMON`).
 */
function isNotification({ mail_from, inboxes }: Pick<MailToExamine, "mail_from" | "inboxes">): boolean {
  return mail_from === "" && inboxes.length === 0;
}

/**
 * Returns whether reading a mail takes less time than passing it to a thread: it is short, and nothing in it has to be
 * verified or unpacked. Only linear code reads such a mail.
 */
export function isQuickToExamine({ raw, client, to_role }: MailToExamine): boolean {
  if (client !== null || to_role || raw.length > SHORT_MAIL_BYTES) return false;
  return headerBytes(raw) <= SHORT_HEADER_BYTES;
}

/** Reads a mail as far as the SMTP session needs it, and asks the DNS about its author. */
export async function examineMail(
  mail: MailToExamine,
  resolverOf: (dns: AskedDns) => Resolver,
): Promise<Examination> {
  const headers = readHeaders(mail.raw);
  const complaint = mail.to_role && isComplaint(headers);
  const from = isNotification(mail) && !complaint ? undefined : fromMailbox(headers);
  const fault = faultIn(headers, from);
  const from_address = from?.ok === true ? from.address : "";
  const marks = machineMarks({ headers, mail_from: mail.mail_from, from_address });
  const words = readMailWords(mail.raw, headers, from_address);
  const found = { fault, ...words, marks, writer_marks: writerMarks(headers), complaint };
  if (fault !== null) return { ...found, author: null, bounce: null, report: null };
  return {
    ...found,
    author: from === undefined ? null : await authorOf(mail, { headers, from_address, resolverOf }),
    bounce: mayBeBounce(mail, marks)
      ? readBounce(Buffer.from(mail.raw.subarray(0, MAX_SCAN_CHARS)).toString("latin1"))
      : null,
    report: mail.to_role ? await reportIn(mail.raw, headers) : null,
  };
}

async function reportIn(raw: Uint8Array, headers: MailHeaders): Promise<DomainReport | null> {
  // Loaded only where it is needed, on a thread: the main thread, which reads short mails itself, starts without the
  // MIME reader.
  const { readDomainReport } = await import("./domain-report.ts");
  return (await readDomainReport(raw, headers)) ?? null;
}

/**
 * Returns whether to look for a bounce in a mail. Some mail systems return mail under another name than their own, but
 * nobody else knows a bounce address.
 */
function mayBeBounce({ inboxes, to_role }: MailToExamine, { hard, soft }: MachineMarks): boolean {
  return hard === "bounce" || (inboxes.length === 0 && !to_role && soft?.reason !== "auto_reply");
}

const TOO_LONG = refusalFor("too_large", "The header section of the mail is larger than 64 KB");
const LOOPING = refusalFor(
  "loop",
  `The mail has passed more than ${MAX_RECEIVED_FIELDS} servers; it is going round in circles`,
);

function faultIn(headers: MailHeaders, from: ReturnType<typeof fromMailbox> | undefined): MailFault | null {
  if (!headers.complete) return TOO_LONG;
  if (headers.problem !== null) {
    const text = `The header of the mail is malformed: ${headers.problem} (RFC 5322 section 2.2). Send it again from another mail program`;
    return refusalFor("malformed_header", text);
  }
  const repeated = repeatedField(headers);
  if (repeated !== undefined) {
    const text = `The mail has more than one ${repeated} field (RFC 5322 section 3.6)`;
    return refusalFor("repeated_field", text);
  }
  if (receivedCount(headers) > MAX_RECEIVED_FIELDS) return LOOPING;
  return from?.ok === false ? noSingleFrom(from.problem) : null;
}

function noSingleFrom(problem: string): MailFault {
  return refusalFor("bad_from", problem.slice(0, MAX_PROBLEM_CHARS));
}

interface Known {
  headers: MailHeaders;
  from_address: string;
  resolverOf: (dns: AskedDns) => Resolver;
}

async function authorOf(mail: MailToExamine, known: Known): Promise<Author> {
  const { headers, from_address: address } = known;
  const identity = await identify(mail, known);
  const meant: Author["meant"] = new Map();
  for (const inbox of mail.inboxes) {
    const reading = readingFor(inbox, identity, headers);
    if (reading !== undefined) meant.set(inbox, reading);
  }
  return { address, identity, meant };
}

async function identify(
  { raw, mail_from, client }: MailToExamine,
  { headers, from_address, resolverOf }: Known,
): Promise<Author["identity"]> {
  if (client === null) return BELIEVED;
  const { dns, ...known } = client;
  const identity = await authenticateSender({
    ...known,
    raw,
    headers,
    mail_from,
    from: { address: from_address },
    resolver: resolverOf(dns),
  });
  return { ...identity, trusted_network: false };
}

/** The identity of authors whose mail comes from a trusted network. */
const BELIEVED: Author["identity"] = {
  authenticated: true,
  auth: { spf: "none", dkim: "none", dmarc: "none", aligned: false },
  dmarc_reject: false,
  direct: true,
  signed: [],
  trusted_network: true,
};
