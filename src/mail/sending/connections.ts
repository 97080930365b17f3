import type { TLSSocket } from "node:tls";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import { NO_TURN } from "./address-turns.ts";
import type { MailError } from "./send-outcome.ts";
import { NEVER_MS, waitLimit } from "../../lib/wait-limit.ts";

export interface MailServer {
  host: string;
  address: string;
}

/** A greeted session with a mail server, lent to one mail at a time. */
export interface Connection {
  smtp: SMTPConnection;
  server: MailServer;
  /** Whether STARTTLS is skipped, because it failed before. */
  plain: boolean;
  /** Undefined when the session is not encrypted. */
  tls: TLSSocket | undefined;
  offers_utf8: boolean;
  /** How many mails were sent over the session. */
  mails: number;
}

export interface ConnectionOptions {
  /** The name in EHLO. */
  name: string;
  port: number;
  connect_ms: number;
  greeting_ms: number;
  /** A certificate authority (PEM) in place of the built-in ones. */
  ca?: string;
}

/** An error before a session existed. `tls_failed`: the server offers STARTTLS, and it fails. */
export interface ConnectError extends MailError {
  tls_failed?: boolean;
}

interface Wish {
  plain: boolean;
  /** Milliseconds since the epoch. */
  deadline: number;
}

export interface Connections extends Disposable {
  /**
   * Lends an open session or a new one; waits while the server has MAX_PER_ADDRESS of ours. Callers already have a turn
   * at the address, so they wait only until a session of an earlier mail is closed. Rejects with a ConnectError.
   */
  take(server: MailServer, wish: Wish): Promise<Connection>;
  /** Returns a session after a successful mail; it is kept for KEEP_MS for the next one. */
  giveBack(connection: Connection): void;
  /** Ends a session after a failed mail. `politely`: the server still answers, and is sent a QUIT. */
  end(connection: Connection, politely: boolean): void;
}

/**
 * Sessions with one address at the same time. Many servers refuse more, and mail for a slow server must not hold up the
 * rest.
 */
export const MAX_PER_ADDRESS = 10;
const MAX_MAILS = 100;
const MAX_KEPT = 100;
const KEEP_MS = 4_000;
const QUIT_MS = 2_000;

/** The state of one address: its sessions, and the callers who wait for one. */
interface Desk {
  open: number;
  kept: Map<Connection, Timer>;
  waiting: (() => void)[];
}

/** Keeps sessions open from one mail to the next, and bounds how many there are. */
export function createConnections(options: ConnectionOptions): Connections {
  const desks = new Map<string, Desk>();
  const open = new Set<SMTPConnection>();

  const deskOf = ({ address }: MailServer): Desk => {
    const desk = desks.get(address) ?? { open: 0, kept: new Map<Connection, Timer>(), waiting: [] };
    desks.set(address, desk);
    return desk;
  };
  const dial = (desk: Desk, server: MailServer, wish: Wish): Promise<Connection> => {
    const smtp = new SMTPConnection(settingsOf(options, server, wish.plain));
    open.add(smtp);
    desk.open += 1;
    smtp.once("end", () => {
      open.delete(smtp);
      desk.open -= 1;
      for (const kept of desk.kept.keys()) if (kept.smtp === smtp) unkeep(desk, kept);
      desk.waiting.shift()?.();
      const is_done = desk.open === 0 && desk.waiting.length === 0;
      if (is_done && desks.get(server.address) === desk) desks.delete(server.address);
    });
    return greet(smtp, server, wish);
  };
  return {
    async take(server, wish) {
      for (;;) {
        const desk = deskOf(server);
        const fits = (one: Connection): boolean =>
          one.server.host === server.host && one.plain === wish.plain;
        const found = [...desk.kept.keys()].findLast(fits);
        if (found) {
          unkeep(desk, found);
          return found;
        }
        if (desk.open < MAX_PER_ADDRESS) return dial(desk, server, wish);
        const [unfit] = desk.kept.keys();
        if (unfit) unfit.smtp.close();
        else await turn(desk, wish.deadline);
      }
    },
    giveBack(connection) {
      // A session that ended while lent is not kept, because nothing would remove it.
      if (connection.smtp.destroyed) return;
      if (connection.mails >= MAX_MAILS || open.size > MAX_KEPT) return hangUp(connection);
      const desk = deskOf(connection.server);
      const timer = setTimeout(() => {
        unkeep(desk, connection);
        hangUp(connection);
      }, KEEP_MS);
      timer.unref();
      desk.kept.set(connection, timer);
      desk.waiting.shift()?.();
    },
    end: (connection, politely) => (politely ? hangUp(connection) : connection.smtp.close()),
    [Symbol.dispose]() {
      for (const smtp of open) smtp.close();
    },
  };
}

function settingsOf(options: ConnectionOptions, { host, address }: MailServer, plain: boolean) {
  return {
    name: options.name,
    host: address,
    servername: host,
    port: options.port,
    connectionTimeout: options.connect_ms,
    greetingTimeout: options.greeting_ms,
    // The sending of a mail has time limits of its own.
    socketTimeout: NEVER_MS,
    secure: false,
    // Opportunistic TLS (RFC 7435): even an unchecked certificate stops eavesdroppers, and the alternative is plain
    // text. Where more is required, the certificate is checked before the first mail.
    opportunisticTLS: !plain,
    ignoreTLS: plain,
    tls: { rejectUnauthorized: false, ...(options.ca === undefined ? {} : { ca: options.ca }) },
  };
}

function greet(smtp: SMTPConnection, server: MailServer, { plain, deadline }: Wish): Promise<Connection> {
  const { promise, resolve, reject } = Promise.withResolvers<Connection>();
  const fail = (error: Error): void => {
    reject(Object.assign(error, { tls_failed: smtp.upgrading === true }));
    smtp.close();
  };
  const timer = waitLimit(Math.max(0, deadline - Date.now()), () =>
    fail(new Error("it did not answer in time")),
  );
  // The listener stays, because an error without one would end the process; the sender of a mail is told of later
  // errors in another way.
  smtp.on("error", fail);
  smtp.once("end", () => reject(new Error("the connection was closed")));
  smtp.connect((error) => {
    if (error) return fail(error);
    const tls = smtp.secure ? (smtp._socket as TLSSocket) : undefined;
    resolve({ smtp, server, plain, tls, offers_utf8: offersUtf8(smtp), mails: 0 });
  });
  return promise.finally(() => timer.clear());
}

function offersUtf8({ lastServerResponse: greeting }: SMTPConnection): boolean {
  return typeof greeting === "string" && /^250[ -]SMTPUTF8\b/im.test(greeting);
}

function unkeep(desk: Desk, connection: Connection): void {
  clearTimeout(desk.kept.get(connection));
  desk.kept.delete(connection);
}

function hangUp({ smtp }: Connection): void {
  if (smtp.destroyed) return;
  if (smtp._socket) smtp._socket.setTimeout(QUIT_MS);
  smtp.quit();
}

function turn(desk: Desk, deadline: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(
    () => {
      desk.waiting = desk.waiting.filter((one) => one !== resolve);
      reject(NO_TURN);
    },
    Math.max(0, deadline - Date.now()),
  );
  desk.waiting.push(resolve);
  return promise.finally(() => clearTimeout(timer));
}
