import { urlOf } from "../../lib/web-address.ts";
import { isIP } from "node:net";
import type { Readable } from "node:stream";
import { createTransport, type SendMailOptions } from "nodemailer";
import { invalid } from "../../errors.ts";
import { allowedByOperator, isPublicAddress } from "../../net/guarded-fetch.ts";
import { refuseOwnFault } from "../../lib/own-faults.ts";
import { quote } from "../../lib/quote.ts";
import { bodyOf, type Given, givenOf } from "./mail-body.ts";
import { matchReplies, NO_UTF8 } from "./matched-smtp.ts";
import type { Sender, SenderOptions, SendOutcome, Timeouts } from "./send.ts";
import {
  commandAddress,
  MAIL_COMMANDS,
  type MailError,
  NO_LOGIN,
  noUtf8,
  notRelayed,
  offersNoLogin,
  refused,
  replyOnOneLine,
  outcomeOf,
} from "./send-outcome.ts";
import { NEVER_MS, waitLimit } from "../../lib/wait-limit.ts";

/**
 * Connections to the relay. More mails at once would wait inside nodemailer, where the queue's fairness does not apply.
 */
export const RELAY_CONNECTIONS = 10;
const MAILS_PER_CONNECTION = 1_000;

interface Streamed extends SendMailOptions {
  stream: () => Readable;
}

/** Creates a sender that hands every mail to one relay. */
export function relaySender(options: SenderOptions, timeouts: Timeouts): Sender {
  const relay = readRelayUrl(options);
  const pool = createTransport({
    ...relay.transport,
    name: options.hostname,
    connectionTimeout: timeouts.connect_ms,
    greetingTimeout: timeouts.greeting_ms,
    // Each mail has limits of its own.
    socketTimeout: NEVER_MS,
    pool: true,
    maxConnections: RELAY_CONNECTIONS,
    maxMessages: MAILS_PER_CONNECTION,
    // The queue decides about further attempts.
    maxRequeues: 1,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  // Replaces the stream that nodemailer makes of `raw`, because that does not show how much was sent.
  pool.use("stream", ({ data, message }, done) => {
    message.processFunc((data as Streamed).stream);
    done();
  });
  return {
    send: async ({ raw, envelope_from, envelope_to }, onBegin) => {
      const to = commandAddress(envelope_to);
      let body = bodyOf(raw);
      const clock = new AbortController();
      const listen = (ms: number) => waitLimit(ms, () => clock.abort());
      let timer = listen(timeouts.attempt_ms);
      const begin = (): void => {
        onBegin?.();
        timer.clear();
        // A server that scans a mail before accepting it needs time: giving up on it would send the mail twice.
        timer = listen(timeouts.confirm_ms);
      };
      try {
        const envelope = { from: nullable(commandAddress(envelope_from)), to: [to] };
        // A new stream for each session: an earlier one may have ended before it took anything.
        const stream = (): Readable => (body = bodyOf(raw, begin));
        const mail: Streamed = { envelope, raw, stream, signal: clock.signal };
        const info = await pool.sendMail(mail);
        return {
          status: "sent",
          response: replyOnOneLine(info.response),
          mx: relay.host,
          tls: relay.always_tls,
        };
      } catch (error) {
        if ((error as MailError).code === NO_UTF8) return noUtf8(`The relay ${relay.host}`, to);
        if (isUnreached(error as MailError, body)) refuseOwnFault(error, { unreached: true });
        const server = `The relay ${relay.host}`;
        const mixed_up = tlsMixUp(error as MailError, relay.transport);
        if (mixed_up === null) return outcomeAt(error as MailError, server, { to, body, envelope_from });
        const response = `${server} could not be reached: it ${mixed_up.words}. ${mixed_up.mend}`;
        return { status: "deferred", response, of_relay: true };
      } finally {
        timer.clear();
      }
    },
    [Symbol.asyncDispose]: () => {
      pool.close();
      return Promise.resolve();
    },
  };
}

function outcomeAt(
  error: MailError,
  server: string,
  { to, body, envelope_from }: { to: string; body: Readable; envelope_from: string },
): SendOutcome {
  if (envelope_from === "" && isOfNullSender(error))
    return { ...refused(error, server, to), no_null_sender: true };
  const refusal = notRelayed(error, server);
  const outcome = refusal ?? outcomeOf(error, server, { to, ...givenTo(error, body) });
  if (outcome.status !== "deferred" || outcome.may_have_it) return outcome;
  const is_of_relay = refusal !== undefined || error.responseCode === undefined || !isOfMail(error);
  return is_of_relay ? { ...outcome, of_relay: true } : outcome;
}

/**
 * Returns whether a server refused the null reverse-path, which every server must accept (RFC 5321 §4.5.5) and some
 * relays do not.
 */
function isOfNullSender({ command, responseCode: code = 0 }: MailError): boolean {
  return command === "MAIL FROM" && code >= 500;
}

/** Returns whether an answer is to a command about one mail, and not to the greeting, the login or STARTTLS. */
function isOfMail({ command = "" }: MailError): boolean {
  return MAIL_COMMANDS.includes(command);
}

/** Ports on which a relay greets first, without TLS (RFC 5321 §4.5.4.2, RFC 6409 §3.1). */
const CLEAR_PORTS = new Set([25, 587]);

interface Trouble {
  /** The problem, as the rest of a sentence about the relay. */
  words: string;
  mend: string;
}

/** Returns the problem where one side expects implicit TLS and the other STARTTLS; null for any other. */
function tlsMixUp(
  { message = "", code }: MailError,
  { secure, port = secure ? 465 : 587 }: { secure: boolean; port?: number },
): Trouble | null {
  if (secure && /WRONG_VERSION_NUMBER/i.test(message))
    return {
      words: `speaks no TLS from the first byte at port ${port}`,
      mend: "In outbound.relay_url, write smtp:// for this port, which uses STARTTLS, or take port 465.",
    };
  // Such a server waits for the handshake, and nobody says anything.
  if (!secure && code === "ETIMEDOUT" && /greeting/i.test(message) && !CLEAR_PORTS.has(port))
    return {
      words: `says nothing at port ${port}, as one does that waits for TLS from the first byte`,
      mend: "In outbound.relay_url, write smtps:// for such a port, or take port 587, which uses STARTTLS.",
    };
  return null;
}

const REFUSED = /^connect ECONNREFUSED (\S+)$/;

/**
 * Connects, logs in if a login is set, and sends nothing. `trouble` is the problem as a sentence, with the mend if
 * known; null when there is none.
 */
export async function tryRelay(
  options: Pick<SenderOptions, "relay_url" | "hostname" | "egress_allow">,
  timeout_ms: number,
): Promise<{ trouble: string | null; mend?: string; logs_in: boolean }> {
  matchReplies();
  const relay = readRelayUrl(options);
  const timeouts = {
    connectionTimeout: timeout_ms,
    greetingTimeout: timeout_ms,
    // Longer than the specific time-outs, so that the error names what did not arrive.
    socketTimeout: 2 * timeout_ms,
  };
  const transport = createTransport({ ...relay.transport, ...timeouts, name: options.hostname });
  const logs_in = "auth" in relay.transport;
  if ("auth" in relay.transport && relay.transport.auth.pass === "")
    return { trouble: "The relay cannot be used: outbound.relay_url names a user and no password", logs_in };
  try {
    await transport.verify();
    return { trouble: null, logs_in };
  } catch (error) {
    const mixed_up = tlsMixUp(error as MailError, relay.transport);
    if (mixed_up !== null) return { trouble: `The relay ${mixed_up.words}.`, mend: mixed_up.mend, logs_in };
    const secret = "auth" in relay.transport ? [relay.transport.auth.pass] : [];
    const words = quote((error as Error).message, secret).replace(REFUSED, "nothing answers at $1");
    const fault = offersNoLogin(error as MailError) ? `${NO_LOGIN}: ${words}` : words;
    return { trouble: `The relay cannot be used: ${fault}`, logs_in };
  } finally {
    transport.close();
  }
}

/** Returns whether nothing of the mail was sent, and nothing was said about it. */
function isUnreached({ responseCode }: MailError, body: Readable): boolean {
  return responseCode === undefined && givenOf(body) === "nothing";
}

/** Returns how much of the mail the relay got; empty if it is unknown whether there was a session. */
function givenTo({ code }: MailError, body: Readable): { given?: Given } {
  const given = givenOf(body);
  return given === "nothing" && code !== "ECONNECTION" ? {} : { given };
}

/** Returns the sender for nodemailer, which writes the null reverse-path as false. */
function nullable(sender: string): string | false {
  return sender === "" ? false : sender;
}

export function readRelayUrl({ relay_url, egress_allow }: Pick<SenderOptions, "relay_url" | "egress_allow">) {
  const url = urlOf(relay_url);
  if (url === null || !/^smtps?:$/.test(url.protocol) || url.hostname === "") {
    throw invalid(
      "outbound.relay_url",
      "invalid",
      'The relay is given like "smtp://user:password@host:587".',
    );
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const secure = url.protocol === "smtps:";
  const user = decodeURIComponent(url.username);
  const is_trusted = isThisMachine(host) || allowedByOperator(host, host, egress_allow);
  // Requires STARTTLS with a password: it must never be sent in the clear, even if an attacker removes STARTTLS from
  // the greeting.
  const requireTLS = !secure && user !== "" && !is_trusted;
  // Hosts in private networks have no certificates of public authorities.
  const is_checked = !is_trusted && (user !== "" || !isPrivateHost(host));
  return {
    host,
    /** Otherwise the relay decides, by offering STARTTLS or not. */
    always_tls: secure || requireTLS,
    transport: {
      host,
      secure,
      requireTLS,
      tls: { rejectUnauthorized: is_checked },
      ...(url.port === "" ? {} : { port: Number(url.port) }),
      // A configured login is used whether the relay offers AUTH or not.
      ...(user === ""
        ? {}
        : { auth: { user, pass: decodeURIComponent(url.password) }, forceAuth: true as const }),
    },
  };
}

function isThisMachine(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

function isPrivateHost(host: string): boolean {
  return isIP(host) === 0 ? !host.includes(".") : !isPublicAddress(host);
}
