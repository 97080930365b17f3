import { createSocket } from "node:dgram";
import { splitListen } from "../../config/forms.ts";
import { damagedKeysWarning } from "../../resources/domains/key-home.ts";
import { addressesOf, lookForHost } from "../../resources/domains/service-check.ts";
import { publicAddresses, sendsItself } from "../../resources/domains/service-records.ts";
import { AppError, messageOf } from "../../errors.ts";
import { isPublicAddress, judgeHost } from "../../net/guarded-fetch.ts";
import { quote } from "../../lib/quote.ts";
import { bounceAddress } from "../../mail/writing/own-ids.ts";
import { type RefusedSender, trySenders } from "../../mail/sending/try-senders.ts";
import { tryRelay } from "../../mail/sending/send-relay.ts";
import { type Bench, type Check, fail, ok, type Outcome, skip, warn } from "./check.ts";
import { judgeCertificate } from "./judge-certificate.ts";
import { openSmtp } from "./smtp-probe.ts";
import { trusted } from "./trust.ts";

const CONNECT_MS = 8_000;
/** An address that nobody has (RFC 5737). Nothing is sent there; the system only chooses the route to it. */
const ELSEWHERE = "192.0.2.1";

export const MAIL_CHECKS: Check[] = [
  { name: "port 25 out", run: checkPortOut },
  { name: "sending address", run: checkSendingAddress },
  { name: "port 25 in", run: checkPortIn },
  { name: "STARTTLS certificate", run: checkStartTls },
  { name: "DKIM keys", run: checkKeys },
  { name: "relay login", run: checkRelay },
  { name: "relay senders", run: checkSenders },
];

async function checkPortOut({ app, targets }: Bench): Promise<Outcome> {
  if (!sendsItself(app.config)) return skip('Only outbound.mode "direct" needs it.');
  const { mail_domain, mail_port } = targets;
  const servers = await app.resolver(mail_domain, "MX");
  const [best] = servers.toSorted((a, b) => a.priority - b.priority);
  const host = best?.exchange ?? mail_domain;
  const { addresses } = await judgeHost(host, { resolve: app.resolver, allow: app.config.egress.allow });
  try {
    // Providers that block port 25 mostly block it for IPv4, and IPv6 may not be available.
    const address = addresses.find((one) => !one.includes(":")) ?? addresses[0] ?? host;
    using probe = await openSmtp({ host: address, port: mail_port, timeout_ms: CONNECT_MS });
    return ok(`${host} answered: ${quote(probe.greeting, [])}`);
  } catch (error) {
    return fail(
      `${host}, a mail server of ${mail_domain}, could not be reached: ${messageOf(error)}`,
      'Most likely your provider blocks port 25. Ask for it to be opened, or send through a relay: outbound.mode = "relay".',
    );
  }
}

/** Checks the address that mail is sent from: of several on one machine, others see the one that the system chooses. */
async function checkSendingAddress({ app }: Bench): Promise<Outcome> {
  if (!sendsItself(app.config)) return skip('Only outbound.mode "direct" needs it.');
  const { hostname } = app.config.smtp;
  return judgeSendingAddress(await outgoingAddress(), { hostname, known: await addressesOf(app, hostname) });
}

/** Judges the sending address; `known` are the addresses of our host name in the DNS. */
export function judgeSendingAddress(own: string, host: { hostname: string; known: string[] }): Outcome {
  const { hostname, known } = host;
  if (!isPublicAddress(own))
    return skip(
      `This machine sends from ${own}, behind a router: which address others see cannot be told here.`,
    );
  if (known.includes(own)) return ok(`Mail goes out from ${own}, which is an address of ${hostname}.`);
  return fail(
    `Mail goes out from ${own}, which is no address of ${hostname}: SPF and the reverse entry do not fit it.`,
    `Give ${hostname} that address in the DNS, or let mail go out from ${known[0] ?? "the address it has"}.`,
  );
}

async function outgoingAddress(): Promise<string> {
  const socket = createSocket("udp4");
  try {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once("error", reject);
    socket.connect(9, ELSEWHERE, (...[error]: unknown[]) => (error ? reject(noHost()) : resolve()));
    await promise;
    return socket.address().address;
  } finally {
    socket.close();
  }
}

function noHost(): AppError {
  return new AppError("unavailable", "This machine has no way to the internet over IPv4.", {
    fix: "See its network: `ip route` should name a default.",
  });
}

async function checkPortIn({ app, running, targets }: Bench): Promise<Outcome> {
  if (!running) return skip("No server is running.");
  const { hostname } = app.config.smtp;
  const { addresses, is_silent } = await lookForHost(app, hostname);
  if (addresses.length === 0)
    return is_silent
      ? skip(`The DNS does not tell the address of ${hostname}: see the line "name server".`)
      : fail(`${hostname} has no address in the DNS.`, "Publish its A record.");
  const tried = await Promise.all(addresses.map((address) => knock(address, { hostname, targets })));
  return tried.find(({ verdict }) => verdict !== "ok") ?? (tried[0] as Outcome);
}

/** Connects to our own SMTP port from this machine, which proves less than a connection from the internet would. */
async function knock(
  address: string,
  { hostname, targets }: { hostname: string; targets: Bench["targets"] },
): Promise<Outcome> {
  const place = `${address} port ${targets.mail_port}`;
  try {
    using probe = await openSmtp({ host: address, port: targets.mail_port, timeout_ms: CONNECT_MS });
    if (probe.greeting.split(/[ \r\n]/)[1]?.toLowerCase() === hostname)
      return ok(
        `This server answers at ${place}. That was a connection from inside: whether your provider lets others in, only a mail from outside shows.`,
      );
    return fail(
      `Another server answers at ${place}: ${quote(probe.greeting, [])}`,
      "See what listens on port 25 there, or whether the address is the right one.",
    );
  } catch (error) {
    const mend = `Let smtp.listen be port 25, or forward port 25 to it, and open it in the firewall.`;
    const words = `Nothing answers at ${place}: ${messageOf(error)}`;
    if (publicAddresses().includes(address) || !isPublicAddress(address)) return fail(words, mend);
    return warn(
      `${words} Many routers do not let a machine reach its own outer address, so this may mean nothing.`,
      `Write to an inbox from outside. If nothing comes: ${mend}`,
    );
  }
}

async function checkStartTls(bench: Bench): Promise<Outcome> {
  const { app, running } = bench;
  if (!running) return skip("No server is running.");
  const { hostname, listen, mta_sts } = app.config.smtp;
  const door = splitListen(listen);
  if (!door || door.port === 0) return skip("smtp.listen names no port.");
  const host = { "0.0.0.0": "127.0.0.1", "::": "::1" }[door.host] ?? door.host;
  using probe = await openSmtp({ host, port: door.port, timeout_ms: CONNECT_MS });
  if (!/^250[ -]STARTTLS\s*$/m.test(await probe.ask("EHLO localhost")))
    return fail("The SMTP door does not offer STARTTLS.", "Restart the server; its log says more.");
  await probe.ask("STARTTLS");
  const socket = await probe.secure({ servername: hostname, ...(await trusted(bench)) });
  return judgeCertificate(socket, {
    name: hostname,
    now_ms: app.nowMs(),
    self_signed: mta_sts === "enforce" ? "fail" : "warn",
  });
}

async function checkKeys({ app }: Bench): Promise<Outcome> {
  const damaged = await damagedKeysWarning(app);
  return damaged === undefined
    ? ok("The keys that mail is signed with can be opened.")
    : fail(damaged.found, damaged.mend);
}

async function checkRelay({ app }: Bench): Promise<Outcome> {
  const { outbound, smtp, egress } = app.config;
  if (outbound.mode !== "relay") return skip('Only outbound.mode "relay" has one.');
  const { trouble, mend, logs_in } = await tryRelay(
    { relay_url: outbound.relay_url, hostname: smtp.hostname, egress_allow: egress.allow },
    CONNECT_MS,
  );
  if (trouble === null)
    return ok(
      logs_in
        ? "The relay answers and takes our login. Nothing was sent."
        : "The relay answers; no login is set. Nothing was sent.",
    );
  return fail(
    trouble,
    mend ??
      "See that outbound.relay_url has the right host, port, user and password; leave user and password out if the relay takes your mail without.",
  );
}

/** A relay that takes the login may still refuse the senders that mail leaves with. */
async function checkSenders({ app }: Bench): Promise<Outcome> {
  const { outbound, smtp, egress } = app.config;
  if (outbound.mode !== "relay") return skip('Only outbound.mode "relay" has one.');
  const options = { relay_url: outbound.relay_url, hostname: smtp.hostname, egress_allow: egress.allow };
  const returns_to = bounceAddress(app, app.newId(), smtp.domain);
  let refused: RefusedSender[];
  try {
    refused = await trySenders(options, [returns_to, ""], CONNECT_MS);
  } catch {
    return skip('There was no session to ask in: see the line "relay login".');
  }
  const own = refused.find(({ sender }) => sender === returns_to);
  if (own)
    return fail(
      `The relay takes no mail from b+…@${smtp.domain}, which answers and letters leave with so that their returns come here: ${own.reply}`,
      `Have the relay let this account send from all addresses of ${smtp.domain}: its provider may want the domain verified there.`,
    );
  const [empty] = refused;
  if (empty)
    return warn(
      `The relay takes no mail without a sender (MAIL FROM:<>), as RFC 5321 has it for notices: ${empty.reply}`,
      "Nothing has to be done: notices leave with a bounce address then.",
    );
  return ok(
    "The relay takes the senders that mail leaves with, as far as it says so before a recipient is named.",
  );
}
