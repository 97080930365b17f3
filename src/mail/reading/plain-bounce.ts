import { decodeWords } from "./headers.ts";
import { type BounceDetails, bounceDetails, MAX_SCAN_CHARS, MAX_SAID_CHARS } from "./machine-mail.ts";

const STILL_TRYING =
  /\b(?:delayed|will (?:be )?retr|still trying|not yet been delivered|do not need to resend|could not send mail for past)/i;

/** Phrases of mail servers that give up a mail, in a notification that contains that mail. */
const GIVEN_UP =
  /\b(?:(?:could|can|was|were|has|have|is)(?: ?not|n't)(?: been)?(?: be)? (?:deliver|reach|found|accept|complet)|undeliver|unable to (?:deliver|relay|reach)|delivery (?:has |status notification \()?fail|fail(?:ed|ure|s)? (?:to deliver|permanently|delivery)|returned (?:mail|to sender)|permanent (?:fatal )?(?:error|failure)|error (?:has )?occurred while (?:attempting|trying) to deliver|did not reach|had (?:delivery|permanent fatal) (?:errors|problems)|user unknown|unknown (?:user|address|recipient|host)|no such (?:user|mailbox|address)|no valid recipients?|account is disabled|(?:does|did)(?: not|n't) exist|rejected|bounced|unzustellbar|nicht zugestellt|non (?:remis|distribu)|no (?:se )?pudo (?:ser )?entreg|non (?:è stato )?(?:possibile )?(?:consegn|recapit))/i;

/** The beginnings of subjects of such notifications, whatever language the text is in. */
const GIVEN_UP_SUBJECT =
  /^(?:\[postmaster\] ?)?(?:undeliver|returned (?:mail|message)|failure (?:notice|delivery)|mail system error|delivery status notification[ :(]{1,3}(?:failure|error)|delivery notification: delivery has failed|(?:(?:permanent|e-?mail|mail|message) )?(?:delivery |could not be )?(?:fail|error|has failed|deliver(?:ed|y fail))|unzustellbar|nicht zustellbar|non (?:remis|recapitabile)|onbestelbaar)/i;

/** Names and addresses of mail systems. An absence notice has the name of its person instead. */
const MAIL_SYSTEM = /mailer[- ]?daemon|post_?master|mail deliver|<>|ndr administrator/i;

/** The first line of the returned mail. */
const RETURNED =
  /^(?:(?:received|return-path|dkim-signature|message-id)[ \t]*:|content-type:[ \t]*(?:message\/rfc822|text\/rfc822-headers))/i;

/** Addresses in a notification; only the first `MAX_NAMED` are examined. */
const ADDRESS = /[^\s<>()[\]:;,"'|]{1,64}@[^\s<>()[\]:;,"'|]{1,255}/g;
const MAX_NAMED = 20;

export interface BounceReport extends BounceDetails {
  /** Whether the notification is only text, without a machine-readable report (RFC 3464). */
  in_words: boolean;
  /**
   * Recipients, in lower case, that a mail system says it could not reach: only in a textual notification that does not
   * contain the mail.
   */
  named?: string[];
}

/**
 * Returns what a notification says about our mail: in a report of RFC 3464, or in words, as qmail, Exchange and others
 * write it. Anybody can write one.
 */
export function readBounce(raw: string): BounceReport {
  const details = bounceDetails(raw);
  const in_words = details.action === undefined && details.status === undefined;
  return { ...details, ...(in_words ? inWords(raw) : {}), in_words };
}

function inWords(raw: string): Omit<BounceReport, "in_words"> {
  const text = raw.slice(0, MAX_SCAN_CHARS).replace(/\r\n/g, "\n");
  const body_at = text.indexOf("\n\n");
  // A read receipt or a complaint holds our mail as well, but that mail has arrived.
  const head = text.slice(0, body_at).replace(/\n[ \t]+/g, " ");
  if (body_at < 0 || /report-type="?(?:disposition-notification|feedback-report)/i.test(head)) return {};
  const body = decoded(head, text.slice(body_at));
  const original = originalIn(body);
  if (!original && !MAIL_SYSTEM.test(fieldIn(head, "from"))) return {};
  const words = wordsBefore(body, original?.at ?? body.length);
  const failure = failureIn(decodeWords(fieldIn(head, "subject")), words);
  if (!failure) return {};
  return { ...failure, ...(original ? { original_message_id: original.id } : { named: namedIn(words) }) };
}

function failureIn(subject: string, words: string): BounceDetails | undefined {
  const status = /(?<![\d.])([45]\.\d{1,3}\.\d{1,3})(?![\d.])/.exec(words);
  const given = status ?? /(?<![\d.])[45]\d\d[ :-]/.exec(words);
  const is_delay = STILL_TRYING.test(words) || STILL_TRYING.test(subject);
  if (!is_delay && given === null && !GIVEN_UP.test(words) && !GIVEN_UP_SUBJECT.test(subject))
    return undefined;
  const from = Math.max(0, (given?.index ?? 0) - MAX_SAID_CHARS / 2);
  return {
    action: is_delay ? "delayed" : "failed",
    ...(status?.[1] === undefined ? {} : { status: status[1] }),
    said: words.slice(from, from + MAX_SAID_CHARS),
  };
}

/** Returns a field of an unfolded header; empty if there is none. */
function fieldIn(head: string, name: string): string {
  const line = head.split("\n").find((one) => one.toLowerCase().startsWith(`${name}:`));
  return line?.slice(name.length + 1).trim() ?? "";
}

/** Returns the body, decoded if it has one encoding; parts with an encoding of their own stay as they are. */
function decoded(head: string, body: string): string {
  const encoding = fieldIn(head, "content-transfer-encoding").toLowerCase();
  if (encoding.startsWith("base64")) return `\n\n${Buffer.from(body, "base64").toString("latin1")}`;
  return encoding.startsWith("quoted-printable") ? unquoted(body) : body;
}

/** Decodes quoted-printable (RFC 2045 §6.7). */
function unquoted(text: string): string {
  return text
    .replaceAll("=\n", "")
    .replace(/=([\dA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** Returns the text before the returned mail, whose header is not examined. */
function wordsBefore(body: string, end: number): string {
  const lines = body.slice(0, end).split("\n");
  const returned = lines.findIndex((line) => RETURNED.test(line.replace(/^[> \t]+/, "")));
  return unquoted((returned < 0 ? lines : lines.slice(0, returned)).join("\n"));
}

function namedIn(words: string): string[] {
  const found = new Set<string>();
  for (const [address] of words.matchAll(ADDRESS)) {
    found.add(address.toLowerCase().replace(/\.$/, ""));
    if (found.size === MAX_NAMED) break;
  }
  return [...found];
}
const LINE_ENDS = "\n\r\u2028\u2029";
const ID = /[ \t]*(?:\n[ \t]*)?<([^<>\s]{1,500})>/y;

/**
 * Returns the Message-ID of a mail inside this one, perhaps quoted, and where its line begins. Linear: the text around
 * one occurrence of the field's name is not examined again for another.
 */
function originalIn(body: string): { id: string; at: number } | undefined {
  for (const { index } of body.matchAll(/message-id:/gi)) {
    let at = index;
    while (at > 0 && "> \t".includes(body.charAt(at - 1))) at -= 1;
    if (at > 0 && !LINE_ENDS.includes(body.charAt(at - 1))) continue;
    ID.lastIndex = index + "message-id:".length;
    const id = ID.exec(body)?.[1];
    if (id !== undefined) return { id, at };
  }
  return undefined;
}
