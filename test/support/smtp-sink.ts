import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerSession } from "smtp-server";

export interface SinkMail {
  raw: Buffer;
  mail_from: string;
  /** The server library shows the domain of an address in Unicode, whatever came. */
  rcpt_to: string[];
  secure: boolean;
  /** Who logged in, if anybody did. */
  user: string | undefined;
}

/**
 * `refuse`: 421 in place of the greeting; `hang`: no greeting at all; `drop_at_sender`: at MAIL FROM; `drop_in_middle`: with
 * the first part of the mail; the other two at its end.
 */
export type SinkFault =
  | "refuse"
  | "hang"
  | "drop_at_sender"
  | "drop_in_middle"
  | "drop_in_data"
  | "hang_in_data";

export interface SinkOptions {
  /** Default 127.0.0.1; tests that need several hosts on one port take 127.0.0.2 and so on. */
  host?: string;
  port?: number;
  /** Default true. `broken` offers it and then fails every handshake. */
  starttls?: boolean | "broken";
  /** By default one that the server library brings, which is good for no name. */
  certificate?: { key: string; cert: string };
  /** Says 421 and ends the session at the mail after so many. */
  mails_per_session?: number;
  /** TLS from the first byte. */
  implicit_tls?: boolean;
  auth?: { user: string; password: string };
  /** Default true. */
  smtputf8?: boolean;
  /** The refusal of a recipient, such as `550 5.1.1 no such mailbox`; undefined takes it. */
  reject?: (address: string) => string | undefined;
  /** The same of a sender; "" is the null sender. */
  reject_sender?: (address: string) => string | undefined;
  /** The same for the whole mail, after its end. */
  reject_mail?: (raw: Buffer) => string | undefined;
  /** What it waits for, with a mail that it keeps, before it says so. */
  beforeWord?: () => Promise<void>;
}

export interface SmtpSink extends AsyncDisposable {
  host: string;
  port: number;
  mails: SinkMail[];
  /** How many connections there have been. */
  connections: number;
  /** How many there were at once. */
  peak: number;
  /** May be set at any time; for all connections from then on. */
  fault: SinkFault | undefined;
  /** Ends every connection without a word. */
  cut(): void;
  /** The next mail that no earlier call has given out, now or when it comes. */
  next(): Promise<SinkMail>;
}

/** A real SMTP server on loopback that keeps what it is given. */
export async function startSmtpSink(options: SinkOptions = {}): Promise<SmtpSink> {
  const waiting: ((mail: SinkMail) => void)[] = [];
  let given = 0;
  const take = (): SinkMail | undefined => {
    const mail = sink.mails[given];
    if (mail) given += 1;
    return mail;
  };
  const keep = (mail: SinkMail): void => {
    sink.mails.push(mail);
    if (waiting.length > 0) waiting.shift()?.(take() ?? mail);
  };
  const server = createServer(options, {
    fault: () => sink.fault,
    keep,
    connected: () => {
      sink.connections++;
      sink.peak = Math.max(sink.peak, server.connections.size);
    },
  });
  const sink: SmtpSink = {
    host: options.host ?? "127.0.0.1",
    port: 0,
    mails: [],
    connections: 0,
    peak: 0,
    cut: () => {
      for (const connection of server.connections) connection._socket.destroy();
    },
    fault: undefined,
    next: async () => take() ?? (await new Promise<SinkMail>((resolve) => waiting.push(resolve))),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server.server, "close");
      sink.cut();
      server.close();
      await closed;
    },
  };
  server.listen(options.port ?? 0, sink.host);
  await once(server.server, "listening");
  sink.port = (server.server.address() as AddressInfo).port;
  return sink;
}

interface Hooks {
  fault: () => SinkFault | undefined;
  keep: (mail: SinkMail) => void;
  connected: () => void;
}

function createServer(options: SinkOptions, hooks: Hooks): SMTPServer {
  const { auth, starttls = true, mails_per_session = Number.POSITIVE_INFINITY } = options;
  const counts = new Map<string, number>();
  const server = new SMTPServer({
    logger: false,
    closeTimeout: 1_000,
    disableReverseLookup: true,
    // So that a refusal goes out word by word.
    hideENHANCEDSTATUSCODES: true,
    secure: options.implicit_tls === true,
    ...options.certificate,
    hideSMTPUTF8: options.smtputf8 === false,
    authOptional: auth === undefined,
    disabledCommands: [...(starttls === false ? ["STARTTLS"] : []), ...(auth === undefined ? ["AUTH"] : [])],
    onConnect: (session, done) => {
      hooks.connected();
      const connection = connectionOf(server, session);
      if (starttls === "broken" && connection) {
        connection.upgrade = () => connection._socket.end("no TLS here\r\n");
      }
      if (hooks.fault() === "hang") return;
      done(hooks.fault() === "refuse" ? refusal("421 4.3.2 come back later") : null);
    },
    onAuth: (given, _session, done) => {
      const isRight = given.username === auth?.user && given.password === auth?.password;
      if (isRight) done(null, { user: given.username });
      else done(refusal("535 5.7.8 wrong user or password"));
    },
    onMailFrom: ({ address }, { id }, done) => {
      const count = (counts.get(id) ?? 0) + 1;
      counts.set(id, count);
      if (hooks.fault() === "drop_at_sender") return connectionOf(server, { id })?._socket.destroy();
      if (count > mails_per_session) return done(refusal("421 4.7.0 too many mails in one session"));
      done(refusal(options.reject_sender?.(address)));
    },
    onRcptTo: ({ address }, _session, done) => done(refusal(options.reject?.(address))),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        if (hooks.fault() === "drop_in_middle") connectionOf(server, session)?._socket.destroy();
      });
      stream.on("end", async () => {
        const fault = hooks.fault();
        if (fault === "drop_in_data") connectionOf(server, session)?._socket.destroy();
        if (fault !== undefined) return;
        const raw = Buffer.concat(chunks);
        const refused = refusal(options.reject_mail?.(raw));
        if (refused) return done(refused);
        hooks.keep({
          raw,
          mail_from: session.envelope.mailFrom === false ? "" : session.envelope.mailFrom.address,
          rcpt_to: session.envelope.rcptTo.map(({ address }) => address),
          secure: session.secure,
          user: typeof session.user === "string" ? session.user : undefined,
        });
        await options.beforeWord?.();
        done(null, "kept");
      });
    },
  });
  // A client that breaks off is a part of many tests, not an accident of the sink.
  server.on("error", () => undefined);
  return server;
}

function connectionOf(server: SMTPServer, { id }: Pick<SMTPServerSession, "id">) {
  return [...server.connections].find((connection) => connection.session.id === id);
}

function refusal(reply: string | undefined): Error | null {
  if (reply === undefined) return null;
  const [, code = "550", words = ""] = /^(\d{3}) (.*)$/.exec(reply) ?? [];
  return Object.assign(new Error(words), { responseCode: Number(code) });
}
