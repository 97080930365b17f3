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
/**
 * Idle time after which a connection is closed here, before a server does it after 5 s or later in the middle of a
 * request.
 */
const IDLE_MS = 3_000;
/** How often idle connections are checked: one is closed at the second check that finds it unused. */
const LOOK_MS = IDLE_MS / 2;
/** Idle connections to one address. */
const MAX_KEPT = 64;
/** Error codes of a connection that was never established. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "ETIMEDOUT"]);
/** How long no connection to a server is kept after it closed one during a request. */
const MISTRUST_MS = 60_000;
/** Error codes of a connection that the other side closed. */
const CLOSED = new Set(["ECONNRESET", "EPIPE"]);
const DEFAULT_PORTS: Record<string, number> = { "http:": 80, "https:": 443 };

export interface PostRequest {
  url: string;
  /** All headers except Host, Content-Length and Connection. */
  headers: Record<string, string>;
  body: string;
  /** Milliseconds from the lookup of the name to the end of the answer. */
  timeout_ms: number;
  /** How much of that time connecting may take. */
  connect_ms: number;
  /** Bytes of the answer that are read. */
  max_bytes: number;
  /** Whether to use a new connection. */
  fresh: boolean;
}

/**
 * Thrown when a connection kept from an earlier request ended before the first byte of an answer. The server may have
 * closed it for being idle, or have read the request: only a caller whose request is idempotent may send it again (RFC
 * 9110 §9.2.2).
 */
export class KeptConnectionError extends Error {
  readonly code = "ECONNRESET";
  override readonly name = "KeptConnectionError";
}

/**
 * Sends POST requests to URLs that users enter, by the rules of `createSafeFetch`. Slow ones hold up nobody: requests
 * by `fetch` share 256 connections, those to models included, and these here do not count. Each takes less than half of
 * the CPU time of `fetch` or `node:http`.
 */
export interface Poster extends Disposable {
  /**
   * Sends a request once. Resolves with the answer once its status is known, with the part that came in time. Throws
   * BlockedAddressError, KeptConnectionError, an error named "TimeoutError", or the error of the lookup, the connection
   * or the parser; an answer with a bare LF or a NUL in its head is invalid.
   */
  post(request: PostRequest): Promise<HttpAnswer>;
}

export function createPoster(rules: EgressRules): Poster {
  const targetOf = targetFor(rules);
  const pool = createPool(rules.ca);

  /** Sends over a kept connection; undefined when there is none, or it ended before anything was sent. */
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
  /** Whether a check has found it idle. */
  was_seen: boolean;
}

interface Pool extends Disposable {
  /** Returns an idle connection, if there is one. */
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

/**
 * Returns the key of a connection. It includes the host name: at the same address another name needs another
 * certificate.
 */
function keyOf({ url, address }: Line): string {
  return `${url.origin} ${address}`;
}

/** Opens a socket to the address; the TLS handshake has the name, and the certificate must be for it. */
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

/** Returns the request as text (RFC 9112 §3). Throws if a header contains a line end. */
function textOf({ host, pathname, search }: URL, { headers, body }: PostRequest): string {
  let head = `POST ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\n`;
  for (const name in headers) {
    const value = headers[name] ?? "";
    // Tests name and value separately: a concatenated string would have to be copied first.
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
