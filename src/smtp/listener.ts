import { refusalFor } from "../reasons.ts";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from "smtp-server";
import type { App } from "../app.ts";
import { senderParty } from "../mail/reading/front-relay.ts";
import { splitListen } from "../config/forms.ts";
import { isStorageFault } from "../db/storage-faults.ts";
import { withLogFields } from "../lib/log.ts";
import { listenFault } from "../lib/start-faults.ts";
import { messageOf } from "../errors.ts";
import { logFieldsOf, notePutOff, noteRefusal } from "../inbound/decide.ts";
import {
  type Delivery,
  receiveMail,
  type Reception,
  type Recipient,
  refuseOversize,
  tooLargeWords,
} from "../inbound/receive.ts";
import { createPeerCount } from "./peers.ts";
import { acceptProxies } from "./proxy.ts";
import { createMailReader } from "./read-mail.ts";
import { recipientOrRefusal, refuseForNow, comparableAddress } from "../inbound/recipients.ts";
import { createRoom } from "./room.ts";
import {
  createVisits,
  refuseListed,
  refuseOverMails,
  refuseOverUnknown,
  type Turned,
  type Visit,
  type Visits,
  whileAwaited,
} from "../inbound/visits.ts";

/** Recipients of one mail; RFC 5321 §4.5.3.1.8 asks for at least 100. */
const MAX_RECIPIENTS = 100;
const MAX_COMMAND_BYTES = 2_048;
/** Silence after which a session ends. RFC 5321 §4.5.3.2 allows minutes, but other clients need the connection. */
const IDLE_MS = 60_000;
const CLOSE_MS = 5_000;

export interface SmtpDoor extends AsyncDisposable {
  /** `host:port` it listens on; null when the door is off. */
  address: string | null;
}

/** Opens the SMTP door on `smtp.listen`. Every answer it gives is decided in `inbound/receive.ts`. */
export async function startSmtp(app: App): Promise<SmtpDoor> {
  const listen = splitListen(app.config.smtp.listen);
  if (!listen) return { address: null, [Symbol.asyncDispose]: () => Promise.resolve() };
  const visits = createVisits(app);
  const server = new Door(
    { ...(await serverOptions(app)), ...handlers(app, visits) },
    createRoom(app, visits),
  );
  server.on("error", (error) => app.log.debug({ err: messageOf(error) }, "SMTP connection ended badly"));
  const proxies = app.config.smtp.proxy_protocol.length > 0 ? acceptProxies(app, server) : undefined;
  await new Promise<void>((resolve, reject) => {
    const { listen: value } = app.config.smtp;
    server.server.once("error", (error) =>
      reject(listenFault(error, { setting: "smtp.listen", value }) as Error),
    );
    server.listen(listen.port, listen.host, () => resolve());
  });
  const { address, port, family } = server.server.address() as AddressInfo;
  const forget = app.certificates.onSwap(({ cert, key }) => server.updateSecureContext({ cert, key }));
  return {
    address: family === "IPv6" ? `[${address}]:${port}` : `${address}:${port}`,
    [Symbol.asyncDispose]: () => {
      forget();
      proxies?.[Symbol.dispose]();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** The SMTP server. It makes room for each connection before the library sees it, with or without a PROXY header. */
class Door extends SMTPServer {
  readonly #makeRoom: ReturnType<typeof createRoom>;

  constructor(options: SMTPServerOptions, makeRoom: ReturnType<typeof createRoom>) {
    super(options);
    this.#makeRoom = makeRoom;
  }

  override connect(...[socket, options]: Parameters<SMTPServer["connect"]>): void {
    this.#makeRoom(this.connections, options?.remoteAddress ?? socket.remoteAddress ?? "");
    super.connect(socket, options);
  }
}

type PatchedOptions = SMTPServerOptions & {
  /** Milliseconds to wait before the greeting; an option added by our patch of smtp-server. */
  earlyTalkerDelay: number;
  /** The reply to a mail whose announced size is over the limit; also added by our patch. */
  tooLargeMessage: string;
};

async function serverOptions(app: App): Promise<PatchedOptions> {
  const { smtp } = app.config;
  const { cert, key } = await app.certificates.current();
  return {
    cert,
    key,
    name: smtp.hostname,
    banner: "Mailwright",
    heloResponse: "%s at your service",
    size: smtp.max_message_bytes,
    tooLargeMessage: tooLargeWords(smtp.max_message_bytes),
    // This server replies itself; no mail over the limit is passed on.
    rejectOversized: false,
    maxRecipients: MAX_RECIPIENTS,
    maxClients: smtp.max_connections,
    maxCommandLength: MAX_COMMAND_BYTES,
    socketTimeout: IDLE_MS,
    closeTimeout: CLOSE_MS,
    earlyTalkerDelay: smtp.early_talker_ms,
    authOptional: true,
    disabledCommands: ["AUTH", "XCLIENT", "XFORWARD", "WIZ", "SHELL", "KILL"],
    hideENHANCEDSTATUSCODES: false,
    disableReverseLookup: true,
    logger: false,
  };
}

function handlers(app: App, visits: Visits): SMTPServerOptions {
  const readMail = createMailReader(app.config.smtp.max_message_bytes);
  const countPeer = createPeerCount(app);
  return {
    onConnect({ id, remoteAddress }, callback) {
      const turned = visits.begin(id, remoteAddress);
      if (turned) app.metrics.count("mailwright_mails_refused_total", { reason: "too_many_connections" });
      callback(turned && refusal(turned));
    },
    onClose: ({ id, remoteAddress }) => visits.end(id, remoteAddress),
    onMailFrom(_, { id, remoteAddress }, callback) {
      visits.goOn(id);
      const visit = visits.of(id);
      const turned = visit && refuseOverMails(app, visit, remoteAddress);
      if (turned) app.metrics.count("mailwright_mails_refused_total", { reason: "rate_limited" });
      callback(turned && refusal(turned));
    },
    onRcptTo: ({ address }, session, callback) =>
      withLogFields({ session: session.id }, async () => {
        visits.goOn(session.id);
        const turned = await admit(app, comparableAddress(address), session, visits.of(session.id)).catch(
          (error: unknown) => localFault(app, error, clientOf(session)),
        );
        callback(turned && refusal(turned));
      }),
    onData: (stream, session, callback) =>
      withLogFields({ session: session.id }, async () => {
        const began = performance.now();
        countPeer(session.remoteAddress);
        visits.goOn(session.id);
        const visit = visits.of(session.id);
        const delivery = envelopeOf(session, visit?.recipients);
        const answer = await readMail(stream, {
          who: senderParty(delivery, app.config.smtp.trusted_relays),
          take: (raw) =>
            whileAwaited(visit, () =>
              timed(
                app,
                raw === null ? refuseOversize(app, delivery) : receiveMail(app, { ...delivery, raw }),
              ),
            ),
          onPutOff: (reason) => notePutOff(app, delivery, { reason }),
        }).catch((error: unknown) => localFault(app, error, delivery));
        callback(answer.code === 250 ? null : refusal(answer), answer.text);
        const ms = Math.round(performance.now() - began);
        if (answer.code === 250) app.log.info({ ...logFieldsOf(delivery), ms }, "mail accepted");
      }),
  };
}

async function timed(app: App, work: Promise<Reception>): Promise<Reception> {
  const began = performance.now();
  const answer = await work;
  const refused = answer.code < 500 ? "put_off" : "refused";
  const outcome = answer.code === 250 ? "accepted" : refused;
  app.metrics.time("mailwright_accept_seconds", { outcome }, (performance.now() - began) / 1_000);
  return answer;
}

/** Returns undefined for a valid recipient, and adds it to the session; otherwise the refusal. */
async function admit(
  app: App,
  address: string,
  session: SMTPServerSession,
  visit: Visit | undefined,
): Promise<Turned | undefined> {
  const answer = await recipientOrRefusal(app, address);
  if (!visit) return undefined;
  if (!("address" in answer)) return refuseOverUnknown(visit) ?? answer;
  const client = clientOf(session);
  const listed =
    visit.listing && !answer.role ? await refuseListed(visit.listing, client.remote_address) : undefined;
  if (listed) noteRefusal(app, client, "block_list");
  const size = announcedSize(session.envelope);
  const refused = listed ?? (await refuseForNow(app, answer, { size, ...client }));
  if (!refused) visit.recipients.set(address.toLowerCase(), answer);
  return refused;
}

/** Returns the size that a client announces for its mail (RFC 1870), 0 where it says none. */
function announcedSize({ mailFrom }: SMTPServerSession["envelope"]): number {
  const { SIZE: size = "0" } = ((mailFrom !== false && mailFrom.args) || {}) as { SIZE?: string };
  return /^\d{1,15}$/.test(size) ? Number(size) : 0;
}

function clientOf({ envelope: { mailFrom }, remoteAddress }: SMTPServerSession) {
  return {
    mail_from: mailFrom === false ? "" : comparableAddress(mailFrom.address),
    remote_address: remoteAddress,
  };
}

/** Returns the envelope of a session, with the inboxes that its recipients name. */
function envelopeOf(
  session: SMTPServerSession,
  recipients: Map<string, Recipient> | undefined,
): Omit<Delivery, "raw"> {
  return {
    ...clientOf(session),
    helo: session.hostNameAppearsAs || "",
    recipients: session.envelope.rcptTo
      .map(({ address }) => recipients?.get(comparableAddress(address).toLowerCase()))
      .filter((known) => known !== undefined),
  };
}

/** Returns the answer for a mail that the database or the disk did not take: the client keeps it and tries again. */
function localFault(app: App, error: unknown, client: ReturnType<typeof clientOf>): Reception {
  const answer = refusalFor("storage");
  // A client that left in the middle of its mail is no fault here, and gets no reply.
  if ((error as NodeJS.ErrnoException).code === "ECONNECTION") return answer;
  // The database logs faults of its disk itself, once.
  if (!isStorageFault(error))
    app.log.error({ err: error }, "a mail could not be taken; the sender was asked to try again");
  notePutOff(app, client, { reason: "storage" });
  return answer;
}

function refusal({ code, enhanced, text }: Turned): Error {
  // RFC 5321 §4.2: the text of a reply is ASCII, and some of ours repeat what the mail said.
  const ascii = text.replaceAll(/[^\x20-\x7e]/g, "?");
  return Object.assign(new Error(ascii), { responseCode: code, enhancedCode: enhanced });
}
