import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import {
  type HttpAnswer,
  type HttpConnection,
  type HttpRequest,
  httpConnection,
  noAnswer,
  tooLate,
} from "./http-connection.ts";
import { type EgressRules, targetFor } from "./guarded-fetch.ts";
import { codeOf } from "../errors.ts";
import { waitLimit } from "../lib/wait-limit.ts";

const MAX_ADDRESSES_TRIED = 3;
/** Servers close an idle connection after 5 s or later; ours goes first, so that no request runs into that. */
const IDLE_MS = 3_000;
/** How often idle connections are looked at: one is closed at the second look that finds it unused. */
const LOOK_MS = IDLE_MS / 2;
/** Idle connections to one address. */
const MAX_KEPT = 64;
/** A connection that did not come about. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "ETIMEDOUT"]);
/** For so long no connection is kept where one was closed under a request. */
const MISTRUST_MS = 60_000;
/** The other side has closed a connection. */
const CLOSED = new Set(["ECONNRESET", "EPIPE"]);
const DEFAULT_PORTS: Record<string, number> = { "http:": 80, "https:": 443 };

export interface PostRequest {
  url: string;
  /** All but Host, Content-Length and Connection. */
  headers: Record<string, string>;
  body: string;
  /** From the look-up of the name to the end of the answer. */
  timeout_ms: number;
  /** How much of that time may pass until a connection stands. */
  connect_ms: number;
  /** How much of the answer is read. */
  max_bytes: number;
  /** Never over a connection that was kept from an earlier request. */
  fresh: boolean;
}

/**
 * A connection that was kept from an earlier request ended before the first byte of an answer. Its other side may have
 * closed it for being idle, or have read the request: to send it again is up to whoever can say that it is the same one
 * (RFC 9110 §9.2.2).
 */
export class KeptConnectionError extends Error {
  readonly code = "ECONNRESET";
  override readonly name = "KeptConnectionError";
}

/**
 * POSTs to addresses that users enter, by the rules of `createSafeFetch`. One that hangs holds up nobody: the calls of
 * `fetch` share 256 connections, the models' among them, and these here do not count. Each costs the processor less than
 * half of what it does by `fetch` or `node:http`.
 */
export interface Poster extends Disposable {
  /**
   * Sends it once. Resolves with the answer, as far as it came in time, once its status is known. Throws
   * BlockedAddressError, KeptConnectionError, an error with the name "TimeoutError", or what the look-up, the connection or the parser threw: an answer with a bare LF or
   * a NUL in its head is none.
   */
  post(request: PostRequest): Promise<HttpAnswer>;
}

export function createPoster(rules: EgressRules): Poster {
  const targetOf = targetFor(rules);
  const pool = createPool(rules.ca);

  /** Undefined when there is no kept connection, or nothing was sent over it before it ended. */
  const overKept = async (line: Line, request: () => HttpRequest): Promise<HttpAnswer | undefined> => {
    for (let kept = pool.take(line); kept; kept = pool.take(line)) {
      try {
        return await kept.send(request());
      } catch (error) {
        if (!isClosed(error) || kept.heard === "answered") throw error;
        if (kept.heard === "unsent") continue;
        pool.mistrust(line);
        throw new KeptConnectionError("A connection that was kept open ended before the answer.", {
          cause: error,
        });
      }
    }
    return undefined;
  };

  return {
    async post(work) {
      const until = performance.now() + work.timeout_ms;
      const url = new URL(work.url);
      const target = targetOf(url);
      const { addresses } = target instanceof Promise ? await within(work.timeout_ms, target) : target;
      const text = textOf(url, work);
      const tries = addresses.slice(0, MAX_ADDRESSES_TRIED);
      for (const [index, address] of tries.entries()) {
        const line = { url, address };
        const request = () => ({ ...work, text, timeout_ms: until - performance.now() });
        const answer = work.fresh ? undefined : await overKept(line, request);
        if (answer) return answer;
        const dialled = pool.dial(line);
        try {
          return await dialled.send(request());
        } catch (error) {
          const goes_elsewhere = dialled.heard === "unsent" && NOT_CONNECTED.has(codeOf(error));
          if (!goes_elsewhere || index === tries.length - 1) throw error;
        }
      }
      throw new Error(`no address to dial for ${url.hostname}`);
    },
    [Symbol.dispose]: pool[Symbol.dispose],
  };
}

interface Line {
  url: URL;
  address: string;
}

interface Kept {
  connection: HttpConnection;
  /** A look has found it idle. */
  was_seen: boolean;
}

interface Pool extends Disposable {
  /** An idle connection, if there is one. */
  take(line: Line): HttpConnection | undefined;
  dial(line: Line): HttpConnection;
  /** Closes the idle connections, and keeps none for a while. */
  mistrust(line: Line): void;
}

function createPool(ca: string | undefined): Pool {
  const open = new Set<HttpConnection>();
  const idle = new Map<string, Kept[]>();
  const mistrusted = new Map<string, number>();

  const look = (): void => {
    for (const [key, until] of mistrusted) if (until < performance.now()) mistrusted.delete(key);
    for (const [key, kept] of idle) {
      for (const { connection } of kept.filter(({ was_seen }) => was_seen))
        connection.close(noAnswer("ETIMEDOUT"));
      const unused = kept.filter(({ was_seen }) => !was_seen);
      if (unused.length === 0) idle.delete(key);
      else
        idle.set(
          key,
          unused.map(({ connection }) => ({ connection, was_seen: true })),
        );
    }
  };
  const looking = setInterval(look, LOOK_MS).unref();

  const keep = (key: string, connection: HttpConnection): boolean => {
    const kept = idle.get(key);
    if (mistrusted.has(key)) return false;
    if (!kept) idle.set(key, [{ connection, was_seen: false }]);
    else if (kept.length < MAX_KEPT) kept.push({ connection, was_seen: false });
    else return false;
    return true;
  };
  const drop = (key: string, connection: HttpConnection): void => {
    open.delete(connection);
    const others = idle.get(key)?.filter((kept) => kept.connection !== connection);
    if (others) idle.set(key, others);
  };

  return {
    take: (line) => idle.get(keyOf(line))?.pop()?.connection,
    dial(line) {
      const key = keyOf(line);
      const ready = line.url.protocol === "https:" ? "secureConnect" : "connect";
      const connection = httpConnection(socketTo(line, ca), ready, {
        mayKeep: () => keep(key, connection),
        closed: () => drop(key, connection),
      });
      open.add(connection);
      return connection;
    },
    mistrust(line) {
      const key = keyOf(line);
      mistrusted.set(key, performance.now() + MISTRUST_MS);
      for (const { connection } of idle.get(key) ?? []) connection.close(noAnswer("ECONNRESET"));
      idle.delete(key);
    },
    [Symbol.dispose]() {
      clearInterval(looking);
      for (const connection of open) connection.close(noAnswer("ECONNRESET"));
    },
  };
}

/** A connection to one name is none to another one at the same address: its certificate was for the first. */
function keyOf({ url, address }: Line): string {
  return `${url.origin} ${address}`;
}

/** The name is in the TLS handshake, and its certificate must be for it, whatever address is dialled. */
function socketTo({ url, address }: Line, ca: string | undefined): Socket {
  const port = Number(url.port) || DEFAULT_PORTS[url.protocol];
  if (port === undefined) throw new Error(`no port for ${url.protocol}`);
  const options = { host: address, port };
  if (url.protocol === "http:") return connectTcp({ ...options, noDelay: true });
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const trusted = ca === undefined ? {} : { ca };
  return connectTls({ ...options, ...trusted, servername: isIP(name) === 0 ? name : "" });
}

const LINE_END = /[\r\n\0]/;

/** RFC 9112 §3. Throws if a header would end its line and begin another one. */
function textOf({ host, pathname, search }: URL, { headers, body }: PostRequest): string {
  let head = `POST ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? "";
    // Each for itself: a text that was put together has to be copied before it can be searched.
    if (LINE_END.test(name) || LINE_END.test(value)) throw new TypeError("A header has a line end in it.");
    head += `${name}: ${value}\r\n`;
  }
  return `${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = waitLimit(ms, () => late.reject(tooLate()));
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    timer.clear();
  }
}

function isClosed(error: unknown): boolean {
  return CLOSED.has(codeOf(error));
}
