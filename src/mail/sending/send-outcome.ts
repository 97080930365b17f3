import { asciiHost } from "../../lib/web-address.ts";
import { messageOf } from "../../errors.ts";
import { withQuotes } from "../../lib/mail-address.ts";
import type { Given } from "./mail-body.ts";
import type { NoHost } from "./mx.ts";
import type { SendOutcome } from "./send.ts";

/** An error of the SMTP client; `responseCode` is the server's answer to `command`. */
export interface MailError {
  message?: string | undefined;
  code?: string | undefined;
  command?: string | undefined;
  response?: string | undefined;
  responseCode?: number | undefined;
}

const RESPONSE_CHARACTERS = 500;

/** Advice for the owner of a refused mail, by the enhanced status code (RFC 3463). */
const MENDS: [RegExp, string][] = [
  [/^5\.1\./, "Check the address."],
  [/^5\.2\.2$/, "The mailbox is full; its owner has to make room."],
  [/^5\.[23]\.[34]$/, "Send a shorter answer or fewer files."],
  [/^5\.7\.2\d$/, "Publish the SPF, DKIM and DMARC records of the sending domain."],
  [/^5\.7\./, "Check the sending domain's SPF and DKIM records, this server's reverse DNS, and block lists."],
];

/**
 * Returns whether an outcome ends the attempt: the server's answer to this mail does, and so does a queue in front of
 * it. After anything else the next server may succeed.
 */
export function isVerdict(outcome: SendOutcome): boolean {
  return (
    outcome.status === "sent" ||
    outcome.status === "crowded" ||
    (outcome.status === "failed" && outcome.code !== undefined)
  );
}

/** The commands whose answer is about the mail, and not about the session (RFC 5321 section 3.3). */
export const MAIL_COMMANDS: readonly string[] = ["MAIL FROM", "RCPT TO", "DATA"];

/**
 * Returns the outcome for an error of the SMTP client; `server` is the beginning of a sentence. Without `given` there
 * was no session.
 */
export function outcomeOf(
  error: MailError,
  server: string,
  { to, given }: { to: string; given?: Given },
): SendOutcome {
  const { responseCode: code, code: kind = "", command = "" } = error;
  if (kind === "EAUTH" || kind === "ETLS") return misconfigured(error, server);
  if (code === undefined) {
    // Refused by the client: every server would get the same.
    const is_ours = kind === "EENVELOPE" || kind === "EMESSAGE";
    return is_ours
      ? { status: "failed", response: `${server} cannot be given the mail for ${to}: ${messageOf(error)}` }
      : brokenOff(error, server, given);
  }
  // RFC 5321 section 4.2.1: a 5yz answer to the mail itself is final; at the greeting it is about the server.
  const is_final = code >= 500 && MAIL_COMMANDS.includes(command);
  return is_final
    ? refused(error, server, to)
    : {
        ...replyPart(error),
        status: "deferred",
        response: `${server} put the mail off: ${replyOnOneLine(error.response ?? "")}`,
      };
}

/** Returns the outcome for a relay whose login or TLS fails: the operator has to fix that, and the mail waits. */
function misconfigured(error: MailError, server: string): SendOutcome {
  const login = offersNoLogin(error) ? NO_LOGIN : "refused the user name or password";
  const response =
    error.code === "EAUTH"
      ? `${server} ${login}. Check outbound.relay_url.`
      : `${server} could not be spoken to in TLS, so it got nothing: ${replyOnOneLine(messageOf(error))}. Check outbound.relay_url; if the relay is on your own network and needs none, add ${quoted(server)} to egress.allow.`;
  return { ...replyPart(error), status: "deferred", response };
}

/**
 * Returns the outcome for a relay that accepts nothing from this server or this sender, whoever the recipient is: like
 * a refused login, the operator has to fix that, and the mail waits. Returns undefined for any other error.
 */
export function notRelayed(error: MailError, server: string): SendOutcome | undefined {
  const { responseCode: code = 0, response: reply = "" } = error;
  if (code < 500) return undefined;
  const said = replyOnOneLine(reply).replace(/[.!]$/, "");
  const words = said.replaceAll(/<[^<>]*>/g, "");
  const waits = { ...replyPart(error), status: "deferred" as const };
  // RFC 4954 section 6.
  if (code === 530 || TAKES_NOTHING.test(words))
    return {
      ...waits,
      response: `${server} takes no mail of this server: ${said}. Set the user and password in outbound.relay_url, or let the relay take mail from the address of this machine; the mail waits.`,
    };
  if (!isOfSender(error, words)) return undefined;
  return {
    ...waits,
    response: `${server} takes no mail of this sender: ${said}. Look there at the account's limits and bills, and at the addresses and domains that it may send as; the mail waits.`,
  };
}

/** Returns whether a refusal is about the sender: the account at the relay, or the sender address. */
function isOfSender(error: MailError, words: string): boolean {
  const { responseCode: code, command = "" } = error;
  const { enhanced = "" } = replyPart(error);
  if (code === 552 || OF_CONTENT.test(enhanced)) return false;
  // At this point the recipient is not known yet.
  if (command === "MAIL FROM") return true;
  if (!MAIL_COMMANDS.includes(command) || OF_RECIPIENT.test(enhanced)) return false;
  return OF_SENDER.test(enhanced) || SENDER_WORDS.test(words);
}

/** Status codes about the content (RFC 3463): too large, or in an unaccepted form. */
const OF_CONTENT = /^5\.(?:2\.3|3\.4|6\.\d+)$/;
const OF_RECIPIENT = /^5\.(?:1\.(?:1|2|3|4|6|10)|2\.[124])$/;
/**
 * Status codes about the sender (RFC 3463, RFC 7372); 5.4.5 is a limit of the account at Gmail, the 5.7.x ones are its
 * reputation at Exchange Online.
 */
const OF_SENDER = /^5\.(?:1\.[78]|4\.5|7\.(?:3|57|60|50[1-3]|70[58]|750))$/;
/** Words about the sender, because many relays use one status for everything. */
const SENDER_WORDS =
  /\bsender (?:address|identity|domain)\b|\bnot owned by\b|\b(?:address|domain|sender|identity) (?:is )?not verified\b|\bsubmission ?quota|\b(?:sending|daily|hourly|monthly) (?:\w{1,20} ){0,3}(?:limit|quota)\b|\bsend as\b|\byour (?:account|plan|ip|host)\b|\bclient host\b/i;

const TAKES_NOTHING =
  /\brelay(?:ing)?(?: access)? (?:is )?(?:denied|prohibited|disallowed|not (?:permitted|allowed))|\b(?:not permitted|unable|not allowed) to relay\b|\bauth(?:entication|orization)? (?:is )?required|\bnot logged in\b/i;

/** The end of a sentence about a relay for which a user and a password are set although it offers no login. */
export const NO_LOGIN = "offers no login at this port, although a user and a password are set for it";

/**
 * Returns whether the server does not offer AUTH at this port (RFC 5321 §4.2.4, RFC 4954 §4). A wrong password is 535,
 * which is not meant here.
 */
export function offersNoLogin({ code, responseCode = 0 }: MailError): boolean {
  return code === "EAUTH" && [500, 502, 503, 504].includes(responseCode);
}

/** Returns the relay's name in quotation marks: `server` ends with it. */
function quoted(server: string): string {
  return `"${server.slice(server.lastIndexOf(" ") + 1)}"`;
}

export function refused(error: MailError, server: string, to: string): SendOutcome & { status: "failed" } {
  const reply = replyPart(error);
  const mend = MENDS.find(([pattern]) => pattern.test(reply.enhanced ?? ""))?.[1] ?? "";
  const words = replyOnOneLine(error.response ?? "").replace(/[.!]$/, "");
  return {
    ...reply,
    status: "failed",
    response: `${server} refused the mail for ${to}: ${words}. ${mend}`.trim(),
  };
}

function replyPart(error: MailError): { code?: number; enhanced?: string } {
  const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(error.response ?? "")?.[1];
  return {
    ...(error.responseCode === undefined ? {} : { code: error.responseCode }),
    ...(enhanced === undefined ? {} : { enhanced }),
  };
}

function reasonOf(error: MailError): string {
  if (error.code === "EABORT" || error.code === "ETIMEDOUT") return "it did not answer in time";
  return messageOf(error);
}

/** Returns the outcome when there was no answer, or an incomplete one. */
function brokenOff(error: MailError, server: string, given: Given | undefined): SendOutcome {
  const reason = replyOnOneLine(reasonOf(error));
  if (given === "all") return unconfirmed(server, reason);
  const what =
    given === "part"
      ? "broke off in the middle of the mail, so it does not have it"
      : given === "nothing"
        ? "was not given the mail"
        : "could not be reached";
  return { status: "deferred", response: `${server} ${what}: ${reason}` };
}

/**
 * Returns the outcome when the server got the whole mail and did not answer: nobody knows whether it has it (RFC 5321
 * §4.5.3.2.6). The reader can recognize a duplicate by its Message-ID.
 */
function unconfirmed(server: string, reason: string): SendOutcome {
  return {
    status: "deferred",
    may_have_it: true,
    response: `${server} was given the whole mail and did not say that it has it, so the mail may come twice: ${reason}`,
  };
}

/**
 * Returns the outcome for an insecure connection. The mail waits, because what looks like a fault of the server may be
 * an attacker in between (RFC 8461 §5, RFC 7672).
 */
export function unsafeConnection(server: string, fault: string): SendOutcome {
  return {
    status: "deferred",
    enhanced: "4.7.5",
    response: `${server} was not given the mail, because the connection to it would not be safe: ${fault}.`,
  };
}

export function notOffered({ lasting, enhanced, sentence, doubtful }: NoHost): SendOutcome {
  // Server names come from a stranger's DNS, so they are cleaned.
  const said = { enhanced, response: replyOnOneLine(sentence) };
  if (!lasting) return { status: "deferred", ...said };
  return { status: "failed", ...said, ...(doubtful && { of_lookup: true as const }) };
}

/** Returns the outcome for an address without a domain name, such as one with an IP address in brackets. */
export function noDomain(to: string): SendOutcome {
  const response = replyOnOneLine(`${to} has no domain name that mail could be sent to. Check the address.`);
  return { status: "failed", enhanced: "5.1.2", response };
}

/** Returns the outcome for a server without SMTPUTF8 (RFC 6531 §3.2). */
export function noUtf8(host: string, to: string): SendOutcome {
  return {
    status: "failed",
    enhanced: "5.6.7",
    response: `${host} takes no addresses with letters beyond ASCII, such as ${to}. Use another address of the recipient.`,
  };
}

/** Returns the address with its domain as A-labels; the local part stays as it is. */
export function asciiDomain(address: string): string {
  const at = address.lastIndexOf("@");
  return at < 0 ? address : `${address.slice(0, at)}@${asciiHost(address.slice(at + 1))}`;
}

/** Returns an address as written in an SMTP command: odd dots are quoted there (RFC 5321 §4.1.2). */
export function commandAddress(address: string): string {
  return withQuotes(asciiDomain(address));
}

/** Returns a server's reply as one line, without repeated codes. */
export function replyOnOneLine(reply: string): string {
  return reply
    .replaceAll(/\r?\n(?:\d{3}[ -](?:\d\.\d{1,3}\.\d{1,3} )?)?/g, " ")
    .replaceAll(/\p{Cc}+/gu, " ")
    .slice(0, RESPONSE_CHARACTERS)
    .trim();
}
