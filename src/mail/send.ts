import { isIP } from "node:net";
import { domainToASCII } from "node:url";

import { createTransport } from "nodemailer";
import SMTPConnection from "nodemailer/lib/smtp-connection";

import { invalid } from "../errors.ts";
import type { Resolver } from "../lib/dns.ts";
import { isPublicAddress } from "../lib/net.ts";
import { hostAddresses, mailHosts } from "./mx.ts";
import {
  isVerdict,
  type MailError,
  noUtf8,
  oneLine,
  outcomeOf,
  unreachable,
  unrouted,
} from "./send-outcome.ts";

export interface OutgoingMail {
  /** The signed mail, CRLF line ends. */
  raw: Buffer;
  /** "" is the null sender <>. */
  envelope_from: string;
  envelope_to: string;
}

/**
 * What became of one attempt. `deferred` is worth another attempt later, `failed` is not; `response` is a
 * sentence for people, with the server's words in it. `code` and `enhanced` are the server's (RFC 5321, RFC 3463).
 */
export type SendOutcome =
  | { status: "sent"; response: string; mx?: string; tls: boolean }
  | { status: "deferred"; code?: number; enhanced?: string; response: string }
  | { status: "failed"; code?: number; enhanced?: string; response: string };

export interface SenderOptions {
  mode: "capture" | "relay" | "direct";
  /** smtp:// or smtps://, with user and password if the relay wants them; only for `relay`. */
  relay_url: string;
  /** The name this server introduces itself by. */
  hostname: string;
  resolver: Resolver;
  /** Networks, addresses or names outside of the public internet that may be dialled. */
  egress_allow: string[];
  /** Of other people's mail servers, in `direct`. */
  port?: number;
  timeouts?: Partial<Timeouts>;
}

interface Timeouts {
  connect_ms: number;
  greeting_ms: number;
  /** Without a sign of life from the server. */
  idle_ms: number;
  /** One attempt as a whole, however many servers it tries. */
  attempt_ms: number;
}

export interface Sender extends AsyncDisposable {
  /** Never rejects for what a server or the network does. */
  send(mail: OutgoingMail): Promise<SendOutcome>;
}

const TIMEOUTS: Timeouts = { connect_ms: 10_000, greeting_ms: 10_000, idle_ms: 60_000, attempt_ms: 300_000 };
const SMTP_PORT = 25;
const RELAY_CONNECTIONS = 5;
const MAILS_PER_CONNECTION = 1_000;
/** Sends mail the way `outbound.mode` says. In `capture` nothing leaves: keeping the mail is the caller's part. */
export function createSender(options: SenderOptions): Sender {
  const timeouts = { ...TIMEOUTS, ...options.timeouts };
  if (options.mode === "relay") return relaySender(options, timeouts);
  if (options.mode === "direct") return directSender(options, timeouts);
  return {
    send: () => Promise.resolve({ status: "sent", response: "kept in the capture box", tls: false }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function relaySender(options: SenderOptions, timeouts: Timeouts): Sender {
  const relay = readRelayUrl(options.relay_url);
  const pool = createTransport({
    ...relay.transport,
    ...connectionOptions(options, timeouts),
    pool: true,
    maxConnections: RELAY_CONNECTIONS,
    maxMessages: MAILS_PER_CONNECTION,
    // The queue decides about further attempts.
    maxRequeues: 1,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return {
    send: async ({ raw, envelope_from, envelope_to }) => {
      const to = asciiDomain(envelope_to);
      const clock = new AbortController();
      const timer = setTimeout(() => clock.abort(), timeouts.attempt_ms);
      try {
        const envelope = { from: nullable(asciiDomain(envelope_from)), to: [to] };
        const info = await pool.sendMail({ envelope, raw, signal: clock.signal });
        return { status: "sent", response: oneLine(info.response), mx: relay.host, tls: relay.always_tls };
      } catch (error) {
        return outcomeOf(error as MailError, `The relay ${relay.host}`, to);
      } finally {
        clearTimeout(timer);
      }
    },
    [Symbol.asyncDispose]: () => {
      pool.close();
      return Promise.resolve();
    },
  };
}

/** nodemailer's word for the null sender. */
function nullable(sender: string): string | false {
  return sender === "" ? false : sender;
}

function readRelayUrl(text: string) {
  const url = URL.parse(text);
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
  const isLocal = isLocalHost(host);
  // On the open net a password never travels in the clear, even if somebody takes STARTTLS out of the greeting.
  const requireTLS = !secure && user !== "" && !isLocal;
  return {
    host,
    /** Else the relay decides, by offering STARTTLS or not. */
    always_tls: secure || requireTLS,
    transport: {
      host,
      secure,
      requireTLS,
      tls: { rejectUnauthorized: !isLocal },
      ...(url.port === "" ? {} : { port: Number(url.port) }),
      ...(user === "" ? {} : { auth: { user, pass: decodeURIComponent(url.password) } }),
    },
  };
}

/** Hosts for which no certificate authority vouches: this machine, the private network, a name without a domain. */
function isLocalHost(host: string): boolean {
  return isIP(host) === 0 ? !host.includes(".") : !isPublicAddress(host);
}

interface Target {
  host: string;
  address: string;
  deadline: number;
}

function directSender(options: SenderOptions, timeouts: Timeouts): Sender {
  const open = new Set<SMTPConnection>();
  const dial = (target: Target, ignoreTLS: boolean): SMTPConnection => {
    const connection = new SMTPConnection({
      ...connectionOptions(options, timeouts),
      host: target.address,
      servername: target.host,
      port: options.port ?? SMTP_PORT,
      secure: false,
      // RFC 7435: a certificate nobody checked still keeps listeners out, and the alternative is plain text.
      opportunisticTLS: !ignoreTLS,
      ignoreTLS,
      tls: { rejectUnauthorized: false },
    });
    open.add(connection);
    connection.once("end", () => open.delete(connection));
    return connection;
  };
  return {
    send: (mail) => sendDirect(mail, options, { dial, deadline: Date.now() + timeouts.attempt_ms }),
    [Symbol.asyncDispose]: () => {
      for (const connection of open) connection.close();
      return Promise.resolve();
    },
  };
}

function connectionOptions(options: SenderOptions, timeouts: Timeouts) {
  return {
    name: options.hostname,
    connectionTimeout: timeouts.connect_ms,
    greetingTimeout: timeouts.greeting_ms,
    socketTimeout: timeouts.idle_ms,
  };
}

interface Line {
  dial: (target: Target, ignoreTLS: boolean) => SMTPConnection;
  /** Milliseconds since the epoch. */
  deadline: number;
}

/** Offers the mail to one server of the domain after the other, until one takes or refuses it. */
async function sendDirect(mail: OutgoingMail, options: SenderOptions, line: Line): Promise<SendOutcome> {
  const to = asciiDomain(mail.envelope_to);
  const domain = to.slice(to.lastIndexOf("@") + 1);
  const hosts = await mailHosts(domain, options.resolver);
  if (!Array.isArray(hosts)) return unrouted(hosts);
  let outcome: SendOutcome | undefined;
  for (const host of hosts) {
    if (Date.now() >= line.deadline) break;
    const next = await offerToHost(mail, host, options, line);
    if (isVerdict(next)) return next;
    // One server that may come back is worth another attempt, whatever is wrong with the others.
    if (outcome?.status !== "deferred") outcome = next;
  }
  return (
    outcome ?? { status: "deferred", response: `There was no time left to reach a server of ${domain}.` }
  );
}

async function offerToHost(
  mail: OutgoingMail,
  host: string,
  options: SenderOptions,
  line: Line,
): Promise<SendOutcome> {
  const addresses = await hostAddresses(host, options);
  if (!Array.isArray(addresses)) return unrouted(addresses);
  let outcome: SendOutcome = { status: "deferred", response: `There was no time left to reach ${host}.` };
  for (const address of addresses) {
    if (Date.now() >= line.deadline) break;
    outcome = await offer(mail, { host, address, deadline: line.deadline }, line.dial);
    if (isVerdict(outcome)) break;
  }
  return outcome;
}

/** Encrypted where that works; where the server offers it but cannot do it, in the clear. */
async function offer(mail: OutgoingMail, target: Target, dial: Line["dial"]): Promise<SendOutcome> {
  const outcome = await converse(mail, target, dial(target, false));
  if (outcome !== "tls_failed") return outcome;
  const plain = await converse(mail, target, dial(target, true));
  return plain === "tls_failed" ? unreachable(target.host, "TLS failed") : plain;
}

function converse(
  mail: OutgoingMail,
  { host, deadline }: Target,
  connection: SMTPConnection,
): Promise<SendOutcome | "tls_failed"> {
  const to = asciiDomain(mail.envelope_to);
  const envelope = { from: asciiDomain(mail.envelope_from), to: [to], size: mail.raw.length };
  return new Promise((resolve) => {
    const settle = (outcome: SendOutcome | "tls_failed"): void => {
      clearTimeout(timer);
      if (outcome !== "tls_failed" && outcome.status === "sent") connection.quit();
      else connection.close();
      resolve(outcome);
    };
    const fail = (error: MailError): void =>
      settle(connection.upgrading === true ? "tls_failed" : outcomeOf(error, host, to));
    const timer = setTimeout(
      () => settle(unreachable(host, "it took too long")),
      Math.max(0, deadline - Date.now()),
    );
    connection.on("error", fail);
    connection.connect((error) => {
      if (error) return fail(error);
      if (needsUtf8(envelope) && !offersUtf8(connection)) return settle(noUtf8(host, to));
      connection.send(envelope, mail.raw, (error, info) => {
        if (error) return fail(error);
        settle({ status: "sent", response: oneLine(info.response), mx: host, tls: connection.secure });
      });
    });
  });
}

function needsUtf8({ from, to }: { from: string; to: string[] }): boolean {
  return /[^\0-\x7f]/.test(from + to.join(""));
}

function offersUtf8(connection: SMTPConnection): boolean {
  const greeting = connection.lastServerResponse;
  return typeof greeting === "string" && /^250[ -]SMTPUTF8\b/im.test(greeting);
}

/** The address with its domain as A-labels; the part before the @ stays as it is. */
function asciiDomain(address: string): string {
  const at = address.lastIndexOf("@");
  return at < 0 ? address : `${address.slice(0, at)}@${domainToASCII(address.slice(at + 1))}`;
}
