import { type MailHeaders, messageIds } from "./headers.ts";

/** `hard` mail is logged and never runs; `soft` mail gets no reply, and runs only if the inbox asks for it. */
export type MailClass =
  | { kind: "person" }
  | { kind: "hard"; reason: HardReason }
  | ({ kind: "soft" } & SoftMark);

const HARD_REASONS = ["bounce", "auto_submitted", "own_address", "own_message_id", "hop_limit"] as const;
export const SOFT_REASONS = ["auto_reply", "bulk", "mailing_list", "no_reply_sender"] as const;
type HardReason = (typeof HARD_REASONS)[number];
type SoftReason = (typeof SOFT_REASONS)[number];

interface SoftMark {
  reason: SoftReason;
  /**
   * True for a mark that forwarders, providers and people leave as well. It does not count against a mail that is
   * certainly its author's (`standingOf`).
   */
  doubtful: boolean;
}

/** Returns whether this reason means that a machine sent the mail. */
export function isMachineReason(reason: string | null): boolean {
  return [...HARD_REASONS, ...SOFT_REASONS].some((one) => one === reason);
}

/** What a mail itself says about who wrote it. */
export interface MachineMarks {
  /** Set if the mail is a machine's whatever else it says. */
  hard: "bounce" | "auto_submitted" | null;
  /** The ids in its Message-ID fields, without angle brackets. */
  message_ids: string[];
  hop_limit: boolean;
  soft: SoftMark | null;
}

export interface MailSigns {
  headers: MailHeaders;
  /** Empty for the null reverse-path. */
  mail_from: string;
  from_address: string;
}

/** How to recognize a mail of this server. */
export interface OwnMail {
  is_own_address: boolean;
  own_message_id: (id: string) => boolean;
}

/** A mail that has passed through this many of our replies is in a loop with another machine. */
const MAX_HOPS = 5;

/** Reads the marks that machines leave in a header. */
export function machineMarks(signs: MailSigns): MachineMarks {
  const { headers } = signs;
  return {
    hard: hardMark(signs),
    message_ids: headers.all("message-id").flatMap(messageIds),
    hop_limit: headers.all("x-mailwright-hop").some(isLastHop),
    soft: softMark(signs),
  };
}

/** Returns whether a person wrote a mail, or a machine that must not be answered (RFC 3834 §2). */
export function classifyMail(marks: MachineMarks, own: OwnMail): MailClass {
  const hard = hardReason(marks, own);
  if (hard) return { kind: "hard", reason: hard };
  return marks.soft === null ? { kind: "person" } : { kind: "soft", ...marks.soft };
}

function hardReason({ hard, message_ids, hop_limit }: MachineMarks, own: OwnMail): HardReason | undefined {
  if (hard !== null) return hard;
  if (own.is_own_address) return "own_address";
  if (message_ids.some(own.own_message_id)) return "own_message_id";
  return hop_limit ? "hop_limit" : undefined;
}

/** What a delivery report says, as far as it is complete. Anybody can write one. */
export interface BounceDetails {
  /** The address that could not be reached, in lower case. */
  recipient?: string;
  /** `5.1.1` (RFC 3463). */
  status?: string;
  /** `failed`, `delayed`, `delivered`, `relayed` or `expanded`. */
  action?: string;
  /** The Message-ID of the mail it is about, without angle brackets. */
  original_message_id?: string;
  /** What the other server said, cut to `MAX_SAID_CHARS`. */
  said?: string;
}

export const MAX_SAID_CHARS = 1_000;

/** A report comes before the mail that it is about, so all that matters is near the top. */
export const MAX_SCAN_CHARS = 262_144;

/** Reads a raw delivery report (RFC 3464) and the mail inside it line by line, without parsing the MIME tree. */
export function bounceDetails(raw: string): BounceDetails {
  const lines = raw
    .slice(0, MAX_SCAN_CHARS)
    .replace(/\r?\n[ \t]+/g, " ")
    .split(/\r?\n/);
  const recipients = recipientFields(
    partOf(lines, /^content-type:\s*message\/(?:global-)?delivery-status\b/i),
  );
  const fields =
    recipients.find((one) => actionOf(one) === "failed") ?? recipients[0] ?? new Map<string, string>();
  const original = partOf(lines, /^content-type:\s*(?:message\/(?:rfc822|global)|text\/rfc822-headers)\b/i);
  const found = {
    recipient: /(?:^|;)\s*<?([^\s;<>]{1,320})>?$/.exec(fields.get("final-recipient") ?? "")?.[1],
    status: statusOf(fields),
    action: actionOf(fields),
    original_message_id: messageIds(original.find((line) => /^message-id\s*:/i.test(line)) ?? "")[0],
    said: fields.get("diagnostic-code")?.slice(0, MAX_SAID_CHARS),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/** Returns the action of a report. Some servers have words of their own for RFC 3464's "failed". */
function actionOf(fields: Map<string, string>): string | undefined {
  const action = /^[a-z]+/.exec(fields.get("action") ?? "")?.[0];
  return action !== undefined && FAILED.has(action) ? "failed" : action;
}

const FAILED = new Set(["failed", "failure", "fail", "error", "expired"]);

/**
 * Returns the status of a report. A code behind the other server's reply code is more exact than the reporting server's
 * own, which may be 5.0.0, 5.1.1 or missing in any case. But the class (4 or 5) is the reporting server's, since days
 * of retries may have made a temporary failure final.
 */
function statusOf(fields: Map<string, string>): string | undefined {
  const status = /^[245]\.\d{1,3}\.\d{1,3}(?!\d)/.exec(fields.get("status") ?? "")?.[0];
  const said = fields.get("diagnostic-code") ?? "";
  const theirs = STATUS_OF_REPLY.exec(said)?.[1];
  const known = theirs ?? (saysNothing(status) ? STATUS.exec(said)?.[0] : status);
  if (saysNothing(known)) return status;
  return status === undefined || known?.startsWith(status.charAt(0)) === true ? known : status;
}

/** Returns whether a status is unspecific (RFC 3463 §3.1). */
function saysNothing(status: string | undefined): boolean {
  return status === undefined || status.endsWith(".0.0");
}

const STATUS = /(?<![\d.])[245]\.\d{1,3}\.\d{1,3}(?![\d.])/;
const STATUS_OF_REPLY = /(?<![\d.])[245]\d\d[ -]([245]\.\d{1,3}\.\d{1,3})(?![\d.])/;

const BOUNCING_SENDER = /^(?:mailer[-_]?daemon|post[-_]?master)$/;
const NO_REPLY_SENDER =
  /^(?:[a-z\d]{1,30}[-_]){0,4}(?:no|donot|do-not|do_not|do\.not)[-_.]?reply(?:[-_.+].*)?$|^bounces?[-+]/;

function hardMark({ headers, mail_from, from_address }: MailSigns): MachineMarks["hard"] {
  if (mail_from === "" || isReport(headers)) return "bounce";
  if ([mail_from, from_address].some((address) => BOUNCING_SENDER.test(localPart(address)))) return "bounce";
  const automatic = headers
    .all("auto-submitted")
    .some((value) => /^auto-(?:generated|notified)$/.test(keyword(value)));
  return automatic ? "auto_submitted" : null;
}

function softMark(signs: MailSigns): SoftMark | null {
  const certain = certainSoft(signs);
  if (certain !== null) return { reason: certain, doubtful: false };
  const doubtful = doubtfulSoft(signs.headers);
  return doubtful === null ? null : { reason: doubtful, doubtful: true };
}

function certainSoft({ headers, from_address }: MailSigns): SoftReason | null {
  const precedence = new Set(
    ["precedence", "x-precedence", "preference"].flatMap((name) => headers.all(name).map(keyword)),
  );
  if (saysAutomatic(headers) || precedence.has("auto_reply")) return "auto_reply";
  if (LIST_FIELDS.some((name) => headers.get(name) !== undefined) || precedence.has("list"))
    return "mailing_list";
  if (precedence.has("bulk") || precedence.has("junk")) return "bulk";
  return NO_REPLY_SENDER.test(localPart(from_address)) ? "no_reply_sender" : null;
}

/**
 * A soft mark that people leave too: X-Loop is written by responders, and by people's filters that pass mail on;
 * Domino's mark before the subject of an absence note is a word of many languages.
 */
function doubtfulSoft(headers: MailHeaders): SoftReason | null {
  if (headers.all("x-loop").some(saysYes)) return "auto_reply";
  if (headers.all("subject").some((value) => /^\s*AUTO: /.test(value))) return "auto_reply";
  return isCampaign(headers) ? "bulk" : null;
}

/**
 * Returns whether Feedback-ID shows a campaign. Senders of campaigns count complaints by it, but mailbox providers
 * (Fastmail, Proton, Zoho, Titan, QQ) and relays write one into every mail.
 */
function isCampaign(headers: MailHeaders): boolean {
  return headers.all("feedback-id").some((value) => value !== "" && !ANYBODYS_FEEDBACK.test(value));
}

const ANYBODYS_FEEDBACK =
  /:(?:amazonses|sg|fastmail|proton|zohomail|flockmailid)\s*$|^\s*(?:webmail|foxmail|esmtp\w{0,10}|lv):/i;

/** Fields of mailing lists: RFC 2369 and RFC 2919, and Mailman's own. */
export const LIST_FIELDS: readonly string[] = [
  "list-id",
  "list-unsubscribe",
  "list-post",
  "list-help",
  "list-subscribe",
  "list-owner",
  "list-archive",
  "x-beenthere",
  "x-mailman-version",
];
/**
 * Fields that mark an automatic mail by their presence, except with the value "no", which some programs of people
 * write.
 */
const AUTOMATIC_FIELDS = [
  "auto-submitted",
  "autorespond",
  "x-autoreply",
  "x-autorespond",
  "x-autoresponder",
  "x-autoresponse",
  "x-auto-reply",
  "x-mail-autoreply",
  "x-autoreply-from",
  "x-autogenerated",
  "x-fc-machinegenerated",
  "x-holidayreply",
  // cron writes its environment here.
  "x-cron-env",
  // Apple Mail writes this in the mail it sends when "unsubscribe" is pressed.
  "x-apple-unsubscribe",
];
/** Fields that mark an automatic mail by their value. */
const AUTOMATIC_VALUES: [name: string, value: RegExp][] = [
  ["x-auto-response-suppress", /\b(?:all|oof|autoreply)\b/i],
  ["x-apple-action", /^\s*vacation\b/i],
  ["x-post-messageclass", /\bautoresponder\b/i],
  ["x-ms-exchange-generated-message-source", /\bagent\b/i],
  ["delivered-to", /^\s*autoresponder\s*$/i],
  // Help desks and vacation programs write these words. An address in this field may be that of a person's filter.
  ["x-loop", /^\s*(?:yes|true|vacation|autorespon\w{0,10})\b/i],
];

function saysAutomatic(headers: MailHeaders): boolean {
  if (AUTOMATIC_FIELDS.some((name) => headers.all(name).some(saysYes))) return true;
  return AUTOMATIC_VALUES.some(([name, value]) => headers.all(name).some((one) => value.test(one)));
}

function saysYes(value: string): boolean {
  return value !== "" && !["no", "false"].includes(keyword(value));
}

/** Returns whether a mail is a report (RFC 6522): a delivery report, a read receipt or a complaint. */
function isReport(headers: MailHeaders): boolean {
  return /^multipart\/report\b/i.test(headers.get("content-type") ?? "");
}

/** Returns whether a mail is a complaint report in the form that mail providers write (RFC 5965). */
export function isComplaint(headers: MailHeaders): boolean {
  return (
    isReport(headers) && /\breport-type\s*=\s*"?feedback-report\b/i.test(headers.get("content-type") ?? "")
  );
}

/** Returns the keyword of a value, before any parameter and without comments (RFC 3834 §5). */
function keyword(value: string): string {
  const found = /^\s*(?:\([^()]*\)\s*)*([^\s;()]+)/.exec(value);
  return (found?.[1] ?? "").toLowerCase();
}

/** A count that cannot be read is treated as the highest: only a machine would write one. */
function isLastHop(value: string): boolean {
  return !/^\d{1,3}$/.test(value) || Number(value) >= MAX_HOPS;
}

function localPart(address: string): string {
  return address.slice(0, Math.max(address.lastIndexOf("@"), 0)).toLowerCase();
}

/** Returns the lines of a part behind its own header, up to the next boundary. */
function partOf(lines: string[], contentType: RegExp): string[] {
  const start = lines.findIndex((line) => contentType.test(line));
  const body = start < 0 ? -1 : lines.indexOf("", start);
  if (body < 0) return [];
  const end = lines.findIndex((line, index) => index > body && line.startsWith("--"));
  return lines.slice(body + 1, end < 0 ? lines.length : end);
}

/**
 * Returns the groups of fields of a report (RFC 3464 §2.1): one about the message, then one for each recipient, with
 * empty lines between.
 */
function recipientFields(lines: string[]): Map<string, string>[] {
  const groups = [new Map<string, string>()];
  for (const line of lines) {
    const { name, value } = fieldOf(line);
    if (line.trim() === "" && groups.at(-1)?.size !== 0) groups.push(new Map());
    else if (name !== "" && value !== "") groups.at(-1)?.set(name.toLowerCase(), value.toLowerCase());
  }
  return groups.filter((fields) => fields.has("action") || fields.has("status"));
}

/**
 * Returns the field of a line. The name is empty if the line is no field, or has a character that ends lines elsewhere.
 */
function fieldOf(line: string): { name: string; value: string } {
  const colon = line.indexOf(":");
  const name = line.slice(0, Math.max(0, colon)).trimEnd();
  const value = line.slice(colon + 1).trimStart();
  return /\s/.test(name) || /[\n\r\u2028\u2029]/.test(value)
    ? { name: "", value: "" }
    : { name, value: value.trim() };
}
