import type { Tlsa } from "../../net/dns-reply.ts";
import { NoHandlesError, refuseOwnFault } from "../../lib/own-faults.ts";
import { type AddressTurns, createAddressTurns, NO_TURN } from "./address-turns.ts";
import {
  type Connection,
  type ConnectError,
  type Connections,
  createConnections,
  MAX_PER_ADDRESS,
} from "./connections.ts";
import { pinFault, pinnedCertificates } from "./dane.ts";
import { bodyOf, givenOf } from "./mail-body.ts";
import { isListed, type TransportPolicy } from "./mta-sts.ts";
import { hostAddresses, mailHosts, MAX_HOSTS } from "./mx.ts";
import type { OutgoingMail, Sender, SenderOptions, SendOutcome, Timeouts } from "./send.ts";
import {
  commandAddress,
  isVerdict,
  type MailError,
  noUtf8,
  noDomain,
  replyOnOneLine,
  outcomeOf,
  notOffered,
  unsafeConnection,
} from "./send-outcome.ts";
import { waitLimit } from "../../lib/wait-limit.ts";

const SMTP_PORT = 25;
const NO_POLICY: TransportPolicy = { mode: "none", mx: [] };
const SERVER_CLOSING = 421;
const MOMENT_MS = 2_000;

/** Creates a sender that delivers every mail to a server of its recipient's domain (MX). */
export function directSender(options: SenderOptions, timeouts: Timeouts): Sender {
  const port = options.port ?? SMTP_PORT;
  const connections = createConnections({
    ...timeouts,
    name: options.hostname,
    port,
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  });
  const inTurn = createAddressTurns(MAX_PER_ADDRESS);
  return {
    send: (mail, onBegin) => {
      const to = commandAddress(mail.envelope_to);
      const domain = to.slice(to.lastIndexOf("@") + 1);
      const deadline = Date.now() + timeouts.attempt_ms;
      const { idle_ms, confirm_ms } = timeouts;
      const patience = { deadline, idle_ms, confirm_ms };
      return sendDirect({ mail, onBegin, to, domain, port, options, inTurn, connections, ...patience });
    },
    [Symbol.asyncDispose]: () => {
      connections[Symbol.dispose]();
      return Promise.resolve();
    },
  };
}

/** One attempt to send one mail. */
interface Attempt {
  mail: OutgoingMail;
  /** See `Sender.send`. */
  onBegin: (() => void) | undefined;
  to: string;
  domain: string;
  port: number;
  options: SenderOptions;
  inTurn: AddressTurns;
  connections: Connections;
  /** Milliseconds since the epoch. */
  deadline: number;
  idle_ms: number;
  confirm_ms: number;
}

/** The security that a server must provide before it gets a mail. */
interface Demand {
  /** A certificate of a trusted authority (MTA-STS). */
  trusted: boolean;
  /** One of these certificates (DANE); undefined when none are published. */
  pins: Tlsa[] | undefined;
  policy: TransportPolicy;
}

/** Offers the mail to one server of the domain after the other, until one accepts or refuses it. */
async function sendDirect(attempt: Attempt): Promise<SendOutcome> {
  const { domain, options, deadline } = attempt;
  if (domain === "") return noDomain(attempt.mail.envelope_to);
  const [hosts, policy = NO_POLICY] = await Promise.all([
    mailHosts(domain, options.resolver),
    options.policyOf?.(domain),
  ]);
  if (!Array.isArray(hosts)) return notOffered(hosts);
  let outcome: SendOutcome | undefined;
  let tried = 0;
  for (const host of hosts) {
    if (Date.now() >= deadline || tried === MAX_HOSTS) break;
    const offered = offerToHost(attempt, host, { policy, onFound: () => void (tried += 1) });
    const next = await beside(outcome, offered);
    if (isVerdict(next)) return next;
    outcome = weightier(outcome, next);
  }
  return (
    outcome ?? { status: "deferred", response: `There was no time left to reach a server of ${domain}.` }
  );
}

/** `onFound`: the server has an address. */
async function offerToHost(
  attempt: Attempt,
  host: string,
  { policy, onFound }: { policy: TransportPolicy; onFound: () => void },
): Promise<SendOutcome> {
  const { domain, port, options, deadline } = attempt;
  const is_named = await isListed(host, policy);
  if (!is_named && policy.mode === "testing") tellFault(attempt, host, "the policy does not name it");
  if (!is_named && policy.mode === "enforce")
    return unsafeConnection(host, `the MTA-STS policy of ${domain} does not name it`);
  const addresses = await hostAddresses(host, options);
  if (!Array.isArray(addresses)) return notOffered(addresses);
  onFound();
  const pins = await pinnedCertificates({ domain, host, port }, options.resolver);
  if (pins === "unknown") return unsafeConnection(host, "the DNS did not say what its certificate is (DANE)");
  const demand = { trusted: policy.mode === "enforce", pins, policy };
  let outcome: SendOutcome | undefined;
  for (const address of addresses) {
    if (Date.now() >= deadline) break;
    const next = await beside(outcome, offer(attempt, { host, address }, demand));
    if (isVerdict(next)) return next;
    // The last result counts, unless an earlier server may have the mail.
    outcome = weightier(next, outcome ?? next);
  }
  return outcome ?? { status: "deferred", response: `There was no time left to reach ${host}.` };
}

/**
 * Returns the outcome of an offer, or the earlier one of another server. If this server has no room, or no handle is
 * left to reach it, the earlier outcome stands: the other may have accepted the mail.
 */
async function beside(before: SendOutcome | undefined, offered: Promise<SendOutcome>): Promise<SendOutcome> {
  const counts = before?.status === "deferred" && (before.may_have_it || before.code !== undefined);
  try {
    const next = await offered;
    return counts && next.status === "crowded" ? before : next;
  } catch (error) {
    if (counts && error instanceof NoHandlesError) return before;
    throw error;
  }
}

/**
 * Returns the outcome with more weight: first one where the server may have the mail, then one that may succeed later.
 */
function weightier(one: SendOutcome | undefined, other: SendOutcome): SendOutcome {
  if (one?.status !== "deferred") return other;
  return other.status === "deferred" && other.may_have_it === true && one.may_have_it !== true ? other : one;
}

async function offer(attempt: Attempt, server: Connection["server"], demand: Demand): Promise<SendOutcome> {
  const { inTurn, deadline, mail, to } = attempt;
  const guest = { address: server.address, share: mail.share ?? null, deadline };
  try {
    const said = await inTurn(guest, () => offerNow(attempt, server, demand));
    return "room" in said ? { status: "crowded", response: crowdedAt(server.host), ...said } : said;
  } catch (error) {
    if (error !== NO_TURN) throw error;
    return outcomeOf(NO_TURN, server.host, { to });
  }
}

function crowdedAt(host: string): string {
  return `${host} has as many mails from here as it may have at once; this one goes as soon as there is room.`;
}

/**
 * Offers the mail encrypted if that works. Where the server offers STARTTLS and fails, sends in the clear, unless the
 * mail requires security.
 */
async function offerNow(
  attempt: Attempt,
  server: Connection["server"],
  demand: Demand,
): Promise<SendOutcome> {
  let plain = false;
  for (;;) {
    let connection: Connection;
    try {
      connection = await attempt.connections.take(server, { plain, deadline: attempt.deadline });
    } catch (error) {
      const { tls_failed, responseCode } = error as ConnectError;
      if (responseCode === undefined) refuseOwnFault(error, { unreached: true });
      if (tls_failed !== true || plain) return outcomeOf(error as MailError, server.host, { to: attempt.to });
      if (isStrict(demand)) return unsafeConnection(server.host, "TLS does not work there");
      plain = true;
      continue;
    }
    const fault = await safetyFault(attempt, connection, demand);
    if (fault !== undefined) {
      attempt.connections.giveBack(connection);
      return unsafeConnection(server.host, fault);
    }
    const said = await converse(attempt, connection);
    // A kept session may have ended meanwhile, which says nothing about this mail.
    if (said !== "stale") return said;
  }
}

function isStrict({ trusted, pins }: Demand): boolean {
  return trusted || pins !== undefined;
}

/** Returns why the session is not secure enough for the domain; undefined if it is. */
async function safetyFault(
  attempt: Attempt,
  { tls, server }: Connection,
  demand: Demand,
): Promise<string | undefined> {
  const { trusted, pins, policy } = demand;
  const doubt = tls ? certificateDoubt(tls) : "it offers no TLS";
  if (policy.mode === "testing" && doubt !== undefined) tellFault(attempt, server.host, doubt);
  if (trusted && doubt !== undefined) return doubt;
  if (pins === undefined) return undefined;
  if (!tls) return doubt;
  return pins.length === 0 ? undefined : pinFault(tls, { domain: attempt.domain, host: server.host }, pins);
}

function certificateDoubt(tls: NonNullable<Connection["tls"]>): string | undefined {
  return tls.authorized
    ? undefined
    : `its certificate is not good for its name (${String(tls.authorizationError)})`;
}

/** Logs a fault; in MTA-STS mode testing the mail is sent all the same (RFC 8461 §5). */
function tellFault({ options, domain }: Attempt, host: string, fault: string): void {
  options.log?.info({ domain, host, fault }, "a mail server would break the MTA-STS policy of its domain");
}

/**
 * Sends the mail over a session. Returns `stale` for a kept session that had ended before anything was said about the
 * mail.
 */
function converse(attempt: Attempt, connection: Connection): Promise<SendOutcome | "stale"> {
  const { mail, to, connections, deadline, idle_ms, confirm_ms } = attempt;
  const { smtp, server, tls } = connection;
  const envelope = { from: commandAddress(mail.envelope_from), to: [to], size: mail.raw.length };
  if (needsUtf8(envelope) && !connection.offers_utf8) {
    connections.giveBack(connection);
    return Promise.resolve(noUtf8(server.host, to));
  }
  const is_old = connection.mails > 0;
  connection.mails += 1;
  const { promise, resolve } = Promise.withResolvers<SendOutcome | "stale">();
  const fail = (error: MailError): void => {
    connections.end(connection, error.responseCode !== undefined);
    const is_closed = error.responseCode === undefined || error.responseCode === SERVER_CLOSING;
    const given = givenOf(body);
    const is_unsaid = given === "nothing" || error.responseCode !== undefined;
    if (is_old && is_closed && is_unsaid && !isOurs(error)) resolve("stale");
    else resolve(outcomeOf(error, server.host, { to, given }));
  };
  // After a pause of the process, the server still gets a moment to answer.
  const left_ms = Math.max(MOMENT_MS, deadline - Date.now());
  let timer = waitLimit(Math.min(idle_ms, left_ms), () => fail(TOO_LONG));
  const body = bodyOf(mail.raw, () => {
    attempt.onBegin?.();
    timer.clear();
    timer = waitLimit(confirm_ms, () => fail(TOO_LONG));
  });
  smtp.send(envelope, body, (error, info) => {
    if (error) return fail(error);
    connections.giveBack(connection);
    resolve({
      status: "sent",
      response: replyOnOneLine(info.response),
      mx: server.host,
      tls: tls !== undefined,
    });
  });
  return promise.finally(() => timer.clear());
}

const TOO_LONG: MailError = new Error("it did not answer in time");

function isOurs({ code, responseCode }: MailError): boolean {
  return responseCode === undefined && (code === "EENVELOPE" || code === "EMESSAGE");
}

function needsUtf8({ from, to }: { from: string; to: string[] }): boolean {
  return /[^\0-\x7f]/.test(from + to.join(""));
}
