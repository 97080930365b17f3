import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from "smtp-server";
import type { App } from "../app.ts";
import { splitListen } from "../config-forms.ts";
import { isOwnDomain } from "../domains/domains.ts";
import { splitAddress } from "../inboxes/addresses.ts";
import { listenFault } from "../lib/start-faults.ts";
import { messageOf } from "../errors.ts";
import {
  type Delivery,
  findRecipient,
  receiveMail,
  type Reception,
  type Recipient,
  refuseOversize,
} from "../messages/receive.ts";
import { loadCertificate } from "./certificate.ts";
import { createMailReader } from "./read-mail.ts";

/** RFC 5321 §4.5.3.1.8 asks for at least 100. */
const MAX_RECIPIENTS = 100;
const MAX_COMMAND_BYTES = 2_048;
/** Silence of a client (RFC 5321 §4.5.3.2 allows minutes; a slot is worth more). */
const IDLE_MS = 60_000;
const CLOSE_MS = 5_000;

export interface SmtpDoor extends AsyncDisposable {
  /** `host:port` it listens on; null when the door is off. */
  address: string | null;
}

/** Opens the SMTP door on `smtp.listen`. Every answer it gives is decided in `messages/receive.ts`. */
export async function startSmtp(app: App): Promise<SmtpDoor> {
  const listen = splitListen(app.config.smtp.listen);
  if (!listen) return { address: null, [Symbol.asyncDispose]: () => Promise.resolve() };
  const server = new SMTPServer({ ...(await serverOptions(app)), ...handlers(app) });
  server.on("error", (error) => app.log.debug({ err: messageOf(error) }, "SMTP connection ended badly"));
  await new Promise<void>((resolve, reject) => {
    const { listen: value } = app.config.smtp;
    server.server.once("error", (error) =>
      reject(listenFault(error, { setting: "smtp.listen", value }) as Error),
    );
    server.listen(listen.port, listen.host, () => resolve());
  });
  const { address, port, family } = server.server.address() as AddressInfo;
  return {
    address: family === "IPv6" ? `[${address}]:${port}` : `${address}:${port}`,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

type PatchedOptions = SMTPServerOptions & {
  /** Milliseconds to wait before the greeting; added by our patch. */
  earlyTalkerDelay: number;
};

async function serverOptions(app: App): Promise<PatchedOptions> {
  const { smtp } = app.config;
  return {
    ...(await loadCertificate(app.config)),
    name: smtp.hostname,
    banner: "Mailwright",
    heloResponse: "%s at your service",
    size: smtp.max_message_bytes,
    rejectOversized: true,
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

function handlers(app: App): SMTPServerOptions {
  const perAddress = new Map<string, number>();
  const recipientsOf = new Map<string, Map<string, Recipient>>();
  const limit = app.config.smtp.max_connections_per_address;
  const readMail = createMailReader(app.config.smtp.max_message_bytes);
  return {
    onConnect(session, callback) {
      const open = (perAddress.get(session.remoteAddress) ?? 0) + 1;
      perAddress.set(session.remoteAddress, open);
      recipientsOf.set(session.id, new Map());
      callback(
        open > limit
          ? refusal(
              421,
              "4.7.0",
              `Too many connections from ${session.remoteAddress}; please try again later`,
            )
          : undefined,
      );
    },
    onClose(session) {
      // One that left before its greeting was never counted.
      if (!recipientsOf.delete(session.id)) return;
      const left = (perAddress.get(session.remoteAddress) ?? 1) - 1;
      if (left > 0) perAddress.set(session.remoteAddress, left);
      else perAddress.delete(session.remoteAddress);
    },
    async onRcptTo({ address }, session, callback) {
      callback(await admit(app, address, recipientsOf.get(session.id)));
    },
    async onData(stream, session, callback) {
      const delivery = envelopeOf(session, recipientsOf.get(session.id));
      const { code, enhanced, text } = await readMail(stream, (raw) =>
        raw === null ? refuseOversize(app, delivery) : receiveMail(app, { ...delivery, raw }),
      ).catch((error: unknown) => localFault(app, error));
      callback(code === 250 ? null : refusal(code, enhanced, text), text);
    },
  };
}

/** Null for a recipient of ours, which is noted among the session's own; else its refusal. */
async function admit(
  app: App,
  address: string,
  recipients: Map<string, Recipient> | undefined,
): Promise<Error | null> {
  try {
    const recipient = await findRecipient(app, address);
    if (!recipient) return await unknownRecipient(app, address);
    recipients?.set(address.toLowerCase(), recipient);
    return null;
  } catch (error) {
    const { code, enhanced, text } = localFault(app, error);
    return refusal(code, enhanced, text);
  }
}

/** The envelope of a session with the inboxes that its recipients name. */
function envelopeOf(
  session: SMTPServerSession,
  recipients: Map<string, Recipient> | undefined,
): Omit<Delivery, "raw"> {
  const { mailFrom, rcptTo } = session.envelope;
  return {
    mail_from: mailFrom === false ? "" : mailFrom.address,
    helo: session.hostNameAppearsAs || "",
    remote_address: session.remoteAddress,
    recipients: rcptTo
      .map(({ address }) => recipients?.get(address.toLowerCase()))
      .filter((known) => known !== undefined),
  };
}

async function unknownRecipient(app: App, address: string): Promise<Error> {
  return (await isOwnDomain(app, splitAddress(address).domain))
    ? refusal(550, "5.1.1", "There is no such address here")
    : refusal(550, "5.7.1", "This server takes mail for its own addresses only");
}

/** The database or the disk said no: the client keeps the mail and tries again. */
function localFault(app: App, error: unknown): Reception {
  // A client that left in the middle of its mail is no fault of ours, and hears no answer.
  if ((error as NodeJS.ErrnoException).code !== "ECONNECTION")
    app.log.error({ err: error }, "a mail could not be taken; the sender was asked to try again");
  const text = "The mail cannot be stored right now; please try again later";
  return { code: 451, enhanced: "4.3.0", text };
}

function refusal(responseCode: number, enhancedCode: string, text: string): Error {
  // RFC 5321 §4.2: the text of a reply is ASCII, and some of ours repeat what the mail said.
  const ascii = text.replaceAll(/[^\x20-\x7e]/g, "?");
  return Object.assign(new Error(ascii), { responseCode, enhancedCode });
}
