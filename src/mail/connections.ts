import type { TLSSocket } from "node:tls";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import type { MailError } from "./send-outcome.ts";
import { groupOf } from "../jobs/queue.ts";
import { createFairTurns, type FairTurns } from "../lib/fair-turns.ts";
import { NEVER_MS, waitLimit } from "../lib/wait-limit.ts";

export interface MailServer {
  host: string;
  address: string;
}

/** A greeted session with a mail server, lent to one mail at a time. */
export interface Connection {
  smtp: SMTPConnection;
  server: MailServer;
  /** Without STARTTLS, because it failed before. */
  plain: boolean;
  /** Undefined when the session is not encrypted. */
  tls: TLSSocket | undefined;
  offers_utf8: boolean;
  /** How many it was given. */
  mails: number;
}

export interface ConnectionOptions {
  /** The name this server introduces itself by. */
  name: string;
  port: number;
  connect_ms: number;
  greeting_ms: number;
  /** A certificate authority (PEM) in place of the built-in ones. */
  ca?: string;
}

/** `tls_failed`: the server offers STARTTLS and cannot do it. */
export interface ConnectError extends MailError {
  tls_failed?: boolean;
}

interface Wish {
  plain: boolean;
  /** Milliseconds since the epoch. */
  deadline: number;
}

/** Whose mail is to go, and until when it may wait (milliseconds since the epoch). */
interface Guest {
  account: string;
  deadline: number;
}

export interface Connections extends Disposable {
  /**
   * Does the work with one session at a time that `take` gives, once it is the account's turn: all accounts have theirs at
   * an address. Rejects with NO_TURN when there was none in time.
   */
  inTurn<T>(server: MailServer, guest: Guest, work: () => Promise<T>): Promise<T>;
  /** A session that is open already, or a new one, as soon as those that are being closed are. Rejects with a ConnectError. */
  take(server: MailServer, wish: Wish): Promise<Connection>;
  /** After a mail went well: the session is kept for the next one for a moment. */
  giveBack(connection: Connection): void;
  /** After one did not. `politely`: the server is there, and hears a QUIT. */
  end(connection: Connection, politely: boolean): void;
}

export const NO_TURN: MailError = new Error("it has many other mails from here to take first");

/** To one address at a time. Many servers refuse more, and what waits for a slow one must not hold up the rest. */
const MAX_PER_ADDRESS = 10;
const MAX_MAILS = 100;
const MAX_KEPT = 100;
const KEEP_MS = 4_000;
const QUIT_MS = 2_000;

/** What goes on with one address. */
interface Desk {
  open: number;
  kept: Map<Connection, Timer>;
  waiting: (() => void)[];
  /** Mails that have their turn, or wait for it. */
  guests: number;
  turns: FairTurns;
  /** Within what a group of accounts may have at once. */
  groups: Map<string, FairTurns>;
}

/** Keeps sessions open from one mail to the next, and bounds how many there are. */
export function createConnections(options: ConnectionOptions): Connections {
  const desks = new Map<string, Desk>();
  const open = new Set<SMTPConnection>();

  const deskOf = ({ address }: MailServer): Desk => {
    const desk = desks.get(address) ?? newDesk();
    desks.set(address, desk);
    return desk;
  };
  const forgetUnused = ({ address }: MailServer): void => {
    const { open = 0, waiting = [], guests = 0 } = desks.get(address) ?? {};
    if (open + waiting.length + guests === 0) desks.delete(address);
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
      forgetUnused(server);
    });
    return greet(smtp, server, wish);
  };
  return {
    async inTurn(server, { account, deadline }, work) {
      const desk = deskOf(server);
      desk.guests += 1;
      const late = new AbortController();
      const timer = waitLimit(Math.max(0, deadline - Date.now()), () => late.abort(NO_TURN));
      try {
        return await turnAt(desk, account, late.signal, () => {
          timer.clear();
          return work();
        });
      } finally {
        timer.clear();
        desk.guests -= 1;
        forgetUnused(server);
      }
    },
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
        else await oneClosed(desk, wish.deadline);
      }
    },
    giveBack(connection) {
      // It may have ended while it was lent; nothing would take it off the desk again.
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
    // Whoever sends a mail has limits of its own for that.
    socketTimeout: NEVER_MS,
    secure: false,
    // RFC 7435: a certificate nobody checked still keeps listeners out, and the alternative is plain text. Where more is
    // asked for, the certificate is looked at before the first mail.
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
  // It stays for what goes wrong later, which the one who sends is told in another way.
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

function newDesk(): Desk {
  const turns = createFairTurns(MAX_PER_ADDRESS);
  return { open: 0, kept: new Map(), waiting: [], guests: 0, turns, groups: new Map() };
}

/** The accounts of a group have turns among themselves for the part of the sessions that the group gets as one. */
function turnAt<T>(desk: Desk, account: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const group = groupOf(account);
  if (group === null) return desk.turns({ who: account, signal }, work);
  const among = desk.groups.get(group) ?? createFairTurns(MAX_PER_ADDRESS / 2);
  desk.groups.set(group, among);
  return among({ who: account, signal }, () => desk.turns({ who: group, signal }, work));
}

function oneClosed(desk: Desk, deadline: number): Promise<void> {
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
