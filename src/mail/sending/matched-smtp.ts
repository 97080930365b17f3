import type { Transform } from "node:stream";
import SMTPConnection from "nodemailer/lib/smtp-connection";

/**
 * Makes the library match each reply to the command that it answers, in all sessions. By itself the library takes any 2yz
 * or 3yz for a yes, so that after one reply too many each command would be taken as answered by the reply to the command
 * before it, and a mail as accepted by the reply to its RCPT TO.
 *
 * A reply that does not fit its command (RFC 5321 §4.3.2), or answers none, ends the session. A shifted reply is found at
 * the latest at DATA, because no other command is answered with 354. Not found is only a reply too many that arrives
 * alone between the 354 and the server's answer to the mail: it looks like that answer.
 */
export function matchReplies(): void {
  Object.assign(SMTPConnection.prototype, MATCHED);
}

/** The error code for an address that the server cannot accept. */
export const NO_UTF8 = "ENOUTF8";
const BEYOND_ASCII = /[^\0-\x7f]/;

/**
 * Entries in the list of commands that are not commands: the connection, and the mail before and after its final dot.
 */
const CONNECTION = "the connection";
const UNENDED = "the mail before its end";
const MAIL = "the mail";

/**
 * Replies that fit each command (RFC 5321 §4.3.2). An unknown code of class 25z counts like the others of that class
 * (§4.2). nodemailer checks the greeting.
 */
const ANY = /^\d{3}$/;
const DONE_OR_NOT = /^(?:25|[45]\d)\d$/;
const FITTING: Record<string, RegExp> = {
  [CONNECTION]: ANY,
  EHLO: DONE_OR_NOT,
  HELO: DONE_OR_NOT,
  STARTTLS: /^(?:220|[45]\d\d)$/,
  MAIL: DONE_OR_NOT,
  RCPT: DONE_OR_NOT,
  DATA: /^(?:354|[45]\d\d)$/,
  [UNENDED]: /^[45]\d\d$/,
  [MAIL]: /^(?:(?!221)2|[45])\d\d$/,
  RSET: /^25\d$/,
  QUIT: ANY,
};
/** The replies that fit AUTH and the lines that answer its challenges (RFC 4954 §4). */
const LOGIN = /^(?:235|334|[45]\d\d)$/;
/** A whole reply: all its lines have one code (RFC 5321 §4.2.1). */
const REPLY = /^(\d{3})(?:-[^\n]*\n\1)*(?: [^\n]*)?$/;
const AHEAD = "it said more than it was asked";
/** The code of our own errors within nodemailer, which would otherwise report a lost connection as ECONNECTION. */
const MISMATCH = "EMISMATCH";

/** The most bytes and lines that a server may send after a command: the longest answer to EHLO has some dozens. */
const MAX_SAID_BYTES = 64 * 1024;
const MAX_SAID_LINES = 500;
const TOO_MUCH = "it sent more than an answer can hold";
const LINE_FEED = 10;

interface Session {
  /** The commands that wait for a reply. */
  asked?: string[];
  /** Set once the server has sent more replies than it was sent commands: it is sent none any more. */
  is_ahead?: boolean | undefined;
  /** What the server has sent since the last command. */
  said?: { bytes: number; lines: number } | undefined;
  destroyed: boolean;
  close(): void;
  _responseQueue: string[];
  _responseActions: ((reply: string) => void)[];
  /** The part of an incomplete reply that has arrived, and whether complete lines are queued. */
  _remainder: string;
  _responsePartial: boolean;
  _sendCommand(command: string, logged?: string): void;
  _processResponse(): void;
  _onData(chunk: Buffer): void;
  _supportedExtensions: string[];
  _createSendStream(done: Done): Transform;
  _setEnvelope(envelope: { from: string | false; to: string[] }, done: Done): void;
  _formatError(message: string, code: string, reply: false, command: string): Error;
  _onError(error: Error, code: string, reply: string | false, command: string): void;
}

type Done = (error: Error | null, reply?: string) => void;
type Methods = Pick<
  Session,
  "_sendCommand" | "_processResponse" | "_onData" | "_createSendStream" | "_setEnvelope" | "_onError"
>;

const { _sendCommand, _processResponse, _onData, _createSendStream, _setEnvelope, _onError } =
  SMTPConnection.prototype as unknown as Methods;

const MATCHED: Methods & ThisType<Session> = {
  _sendCommand(command, logged) {
    if (this.destroyed) return;
    const verb = /^[A-Z]+(?= |$)/.exec(command)?.[0];
    if (isAhead(this)) {
      if (verb === "QUIT") this.close();
      else giveUp(this, AHEAD);
      return;
    }
    askedOf(this).push(command === "." ? MAIL : (verb ?? "AUTH"));
    this.said = undefined;
    _sendCommand.call(this, command, logged);
  },
  _processResponse() {
    if (this.destroyed) return;
    const is_ahead = isAhead(this);
    const asked = askedOf(this);
    const [reply = ""] = this._responseQueue;
    if (isUnready(reply) || (asked.length === 0 && isLeaving(reply))) return _processResponse.call(this);
    const command = asked.shift();
    const all_good = this._responseQueue.every((one) => one.startsWith("2") || isLeaving(one));
    const fault = faultOf(command, reply, { is_ahead, all_good });
    if (fault !== undefined) return giveUp(this, fault);
    // The server would take a further command as part of the mail.
    if (command === UNENDED) this.is_ahead = true;
    _processResponse.call(this);
    if (command === UNENDED) this.close();
  },
  // nodemailer keeps every line, and takes them off one by one, at a cost that grows with all that are left.
  _onData(chunk) {
    if (this.destroyed) return;
    const said = (this.said ??= { bytes: 0, lines: 0 });
    said.bytes += chunk.length;
    for (const byte of chunk) if (byte === LINE_FEED) said.lines += 1;
    if (said.bytes > MAX_SAID_BYTES || said.lines > MAX_SAID_LINES) return giveUp(this, TOO_MUCH);
    _onData.call(this, chunk);
  },
  _createSendStream(done) {
    const asked = askedOf(this);
    asked.push(UNENDED);
    return _createSendStream.call(this, done).once("end", () => {
      const at = asked.indexOf(UNENDED);
      if (at !== -1) asked[at] = MAIL;
    });
  },
  // nodemailer would send such an address to servers without SMTPUTF8 (RFC 6531 §3.2), as bytes whose meaning they
  // guess.
  _setEnvelope(envelope, done) {
    const needs_utf8 = BEYOND_ASCII.test([envelope.from || "", ...envelope.to].join(""));
    if (!needs_utf8 || this._supportedExtensions.includes("SMTPUTF8"))
      return _setEnvelope.call(this, envelope, done);
    done(this._formatError("the server does not offer SMTPUTF8", NO_UTF8, false, "MAIL FROM"));
  },
  _onError(error, code, reply, command) {
    _onError.call(this, error, code === MISMATCH ? "ECONNECTION" : code, reply, command);
  },
};

/** Returns why a reply does not fit the command; undefined when it does. */
function faultOf(
  command: string | undefined,
  reply: string,
  { is_ahead, all_good }: { is_ahead: boolean; all_good: boolean },
): string | undefined {
  if (command === undefined) return `it said without being asked: ${reply}`;
  const code = REPLY.exec(reply)?.[1] ?? "";
  if (!(FITTING[command] ?? LOGIN).test(code)) return `it answered ${command} with: ${reply}`;
  // If more follows, this may be a surplus reply.
  const is_unsure = (command === MAIL && !all_good) || (command === "DATA" && code === "354");
  return is_ahead && is_unsure ? AHEAD : undefined;
}

function askedOf(session: Session): string[] {
  return (session.asked ??= [CONNECTION]);
}

/**
 * Returns whether the server has sent more than it was asked for. nodemailer drops what is left before TLS begins (RFC
 * 3207 §6).
 */
function isAhead(session: Session): boolean {
  const asked = askedOf(session);
  if (asked[0] === "STARTTLS") return false;
  const said = session._responseQueue.filter((reply) => reply.trim() !== "" && !isLeaving(reply)).length;
  const is_saying = !session._responsePartial && session._remainder.trim() !== "";
  session.is_ahead ||= said + (is_saying ? 1 : 0) > asked.length;
  return session.is_ahead;
}

/** Returns whether a reply is empty or incomplete: nodemailer then waits for more. */
function isUnready(reply: string): boolean {
  return reply.trim() === "" || /(?:^|\n)\d+-[^\n]*$/.test(reply);
}

/** Returns whether the server is closing (421, RFC 5321 §3.8), which it may say at any time. Some say 221. */
function isLeaving(reply: string): boolean {
  return /^[24]21(?: |$)/.test(reply);
}

/** Ends a session like a lost connection: nothing more is known about the mail than before. */
function giveUp(session: Session, why: string): void {
  session._onError(new Error(why), MISMATCH, false, "CONN");
}
