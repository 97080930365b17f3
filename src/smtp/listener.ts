import type { AddressInfo } from "node:net";
import {
  SMTPServer,
  type SMTPServerDataStream,
  type SMTPServerOptions,
  type SMTPServerSession,
} from "smtp-server";
import type { App } from "../app.ts";
import { splitListen } from "../config-forms.ts";
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

/** RFC 5321 §4.5.3.1.8 asks for at least 100. */
const MAX_RECIPIENTS = 100;
const MAX_COMMAND_BYTES = 2_048;
/** Silence of a client (RFC 5321 §4.5.3.2 allows minutes; a slot is worth more). */
const IDLE_MS = 60_000;
/** One mail from DATA to its end, however slowly it trickles in (RFC 5321 §4.5.3.2.5). */
const DATA_MS = 5 * 60_000;
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
    server.server.once("error", reject);
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
    size: smtp.max_message_bytes,
    rejectOversized: true,
    maxRecipients: MAX_RECIPIENTS,
    maxClients: smtp.max_connections,
    maxCommandLength: MAX_COMMAND_BYTES,
    socketTimeout: IDLE_MS,
    closeTimeout: CLOSE_MS,
    earlyTalkerDelay: smtp.early_talker_ms,
    authOptional: true,
    disabledCommands: ["AUTH"],
    hideENHANCEDSTATUSCODES: false,
    disableReverseLookup: true,
    logger: false,
  };
}

function handlers(app: App): SMTPServerOptions {
  const perAddress = new Map<string, number>();
  const recipientsOf = new Map<string, Map<string, Recipient>>();
  const limit = app.config.smtp.max_connections_per_address;
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
      recipientsOf.delete(session.id);
      const left = (perAddress.get(session.remoteAddress) ?? 1) - 1;
      if (left > 0) perAddress.set(session.remoteAddress, left);
      else perAddress.delete(session.remoteAddress);
    },
    onRcptTo({ address }, session, callback) {
      findRecipient(app, address).then(
        (recipient) => {
          if (!recipient) return callback(unknownRecipient(app, address));
          recipientsOf.get(session.id)?.set(address.toLowerCase(), recipient);
          callback();
        },
        (error: unknown) => callback(localFault(app, error)),
      );
    },
    onData(stream, session, callback) {
      const recipients = recipientsOf.get(session.id) ?? new Map<string, Recipient>();
      takeMail(app, stream, { session, recipients }).then(
        (reception) => {
          if (reception.code === 250) callback(null, reception.text);
          else callback(refusal(reception.code, reception.enhanced, reception.text));
        },
        (error: unknown) => callback(localFault(app, error)),
      );
    },
  };
}

/** Reads the mail to its end and hands it on; one over the limit is read away without being kept. */
async function takeMail(
  app: App,
  stream: SMTPServerDataStream,
  { session, recipients }: { session: SMTPServerSession; recipients: Map<string, Recipient> },
): Promise<Reception> {
  const chunks: Buffer[] = [];
  const arrived = await readWithin(DATA_MS, stream, (chunk) => {
    if (stream.sizeExceeded) chunks.length = 0;
    else chunks.push(chunk);
  });
  if (!arrived) return TOO_SLOW;
  const { mailFrom, rcptTo } = session.envelope;
  const delivery: Omit<Delivery, "raw"> = {
    mail_from: mailFrom === false ? "" : mailFrom.address,
    helo: session.hostNameAppearsAs || "",
    remote_address: session.remoteAddress,
    recipients: rcptTo
      .map(({ address }) => recipients.get(address.toLowerCase()))
      .filter((known) => known !== undefined),
  };
  if (stream.sizeExceeded) return refuseOversize(app, delivery);
  return receiveMail(app, { ...delivery, raw: Buffer.concat(chunks) });
}

const TOO_SLOW: Reception = {
  code: 421,
  enhanced: "4.4.2",
  text: "The mail took too long to arrive; please try again",
};

/** False when the stream has not ended after `ms`; it is destroyed then. */
async function readWithin(
  ms: number,
  stream: SMTPServerDataStream,
  take: (chunk: Buffer) => void,
): Promise<boolean> {
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    stream.destroy();
  }, ms);
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) take(chunk);
  } catch (error) {
    if (!late) throw error;
  } finally {
    clearTimeout(timer);
  }
  return !late;
}

function unknownRecipient(app: App, address: string): Error {
  const domain = address.slice(address.lastIndexOf("@") + 1).toLowerCase();
  return domain === app.config.smtp.domain
    ? refusal(550, "5.1.1", "There is no such address here")
    : refusal(550, "5.7.1", "This server takes mail for its own addresses only");
}

/** The database or the disk said no: the client keeps the mail and tries again. */
function localFault(app: App, error: unknown): Error {
  app.log.error({ err: error }, "a mail could not be taken; the sender was asked to try again");
  return refusal(451, "4.3.0", "The mail cannot be stored right now; please try again later");
}

function refusal(responseCode: number, enhancedCode: string, text: string): Error {
  return Object.assign(new Error(text), { responseCode, enhancedCode });
}
