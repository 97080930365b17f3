import { isIP, type Socket, connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { type AnswerReader, createAnswerReader, type HttpAnswer } from "./http-answer.ts";
import { type DialTarget, type EgressRules, targetFor } from "./net.ts";

const MAX_ADDRESSES_TRIED = 3;
/** Servers close an idle connection after 5 s or later; ours goes first, so that no request runs into that. */
const IDLE_MS = 3_000;
const SWEEP_MS = 1_000;
const MAX_KEPT = 512;
/** A connection that did not come about. After these nothing can have been sent. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "ETIMEDOUT"]);

export interface PostRequest {
  url: string;
  /** All but Host, Content-Length and Connection. */
  headers: Record<string, string>;
  body: string;
  /** From the look-up of the name to the end of the answer. */
  timeout_ms: number;
  /** Of it, at most so much until a connection stands. */
  connect_ms: number;
  /** Of the answer, so much is read. */
  max_bytes: number;
}

/**
 * POSTs to addresses that users enter, by the rules of `createSafeFetch`. It has connections of its own, of which one
 * that hangs holds up nobody: all calls of `fetch` share 256, the models' among them.
 */
export interface Poster extends Disposable {
  /**
   * Resolves with the answer, as far as it came in time, once its status is known. Throws BlockedAddressError, an error
   * with the name "TimeoutError", or what the look-up or the connection threw.
   */
  post(request: PostRequest): Promise<HttpAnswer>;
}

interface Line {
  /** Of connections that may take each other's place. */
  key: string;
  url: URL;
  host: string;
  address: string;
  ca: string | undefined;
}

export function createPoster(rules: EgressRules): Poster {
  const targetOf = targetFor(rules);
  const kept = createKeptConnections();

  const exchange = async (line: Line, request: PostRequest, until: number): Promise<HttpAnswer> => {
    const work = { bytes: requestBytes(line.url, request), max_bytes: request.max_bytes, until };
    const old = kept.take(line.key);
    if (old) {
      try {
        return await old.exchange(work);
      } catch (error) {
        // It was closed from the other side just then: nobody has read the request.
        if (!(error instanceof ClosedBeforeAnswerError)) throw error;
      }
    }
    const socket = await dial(line, Math.min(request.connect_ms, left(until)));
    return connectionOver(socket, (connection) => kept.keep(line.key, connection)).exchange(work);
  };

  return {
    async post(request) {
      const until = performance.now() + request.timeout_ms;
      const url = new URL(request.url);
      const target = await within(request.timeout_ms, targetOf(url));
      const lines = linesTo(url, target, rules);
      for (const [index, line] of lines.entries()) {
        try {
          return await exchange(line, request, until);
        } catch (error) {
          if (!NOT_CONNECTED.has(codeOf(error)) || index === lines.length - 1) throw error;
        }
      }
      throw new Error(`no address to dial for ${url.hostname}`);
    },
    [Symbol.dispose]: () => kept.close(),
  };
}

class ClosedBeforeAnswerError extends Error {
  readonly code = "ECONNRESET";
}

function linesTo(url: URL, { addresses }: DialTarget, { ca }: EgressRules): Line[] {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return addresses
    .slice(0, MAX_ADDRESSES_TRIED)
    .map((address) => ({ key: `${url.protocol}//${url.host} ${address}`, url, host, address, ca }));
}

function requestBytes({ host, pathname, search }: URL, { headers, body }: PostRequest): Buffer {
  const lines = [
    `POST ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: keep-alive",
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** The name is in the TLS handshake and its certificate must be for it, whatever address was dialled. */
function dial({ url, host, address, ca }: Line, ms: number): Promise<Socket> {
  const secure = url.protocol === "https:";
  const port = Number(url.port || (secure ? 443 : 80));
  const to = { host: address, port, noDelay: true };
  const named = isIP(host) === 0 ? { servername: host } : {};
  const trusted = ca === undefined ? {} : { ca };
  const socket = secure
    ? connectTls({ ...to, ...named, ...trusted, ALPNProtocols: ["http/1.1"] })
    : connectTcp(to);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const timer = setTimeout(() => socket.destroy(tooLate()), ms);
  socket.once("error", reject);
  socket.once("close", () => reject(new ClosedBeforeAnswerError("The connection was closed at once.")));
  socket.once(secure ? "secureConnect" : "connect", () => resolve(socket));
  return promise.finally(() => {
    clearTimeout(timer);
    socket.removeListener("error", reject);
  });
}

interface Exchange {
  bytes: Buffer;
  max_bytes: number;
  /** On the clock of `performance.now`. */
  until: number;
}

interface Connection {
  /** One at a time. */
  exchange(work: Exchange): Promise<HttpAnswer>;
  isOpen(): boolean;
  close(): void;
}

/** What waits for an answer on a connection. */
interface Pending {
  reader: AnswerReader;
  heard: boolean;
  timer: ReturnType<typeof setTimeout>;
  resolve: (answer: HttpAnswer) => void;
  reject: (error: unknown) => void;
}

/** `onFree` gets the connection when an exchange has ended and another can follow; else it is closed. */
function connectionOver(socket: Socket, onFree: (connection: Connection) => void): Connection {
  let pending: Pending | undefined;
  let open = true;

  const end = (error: unknown): void => {
    const ended = pending;
    pending = undefined;
    const free = ended?.reader.reusable() === true && open;
    // What comes unasked is no answer to anything.
    if (!free) close();
    if (!ended) return;
    clearTimeout(ended.timer);
    if (free) onFree(connection);
    // The status decides: whoever has said it has the request, whatever became of the rest of the answer.
    const answer = ended.reader.answer();
    if (answer) ended.resolve(answer);
    else ended.reject(error);
  };
  const close = (): void => {
    open = false;
    socket.destroy();
  };
  const endEarly = (): void => {
    open = false;
    const words = "The connection was closed before the answer.";
    end(
      pending?.heard
        ? Object.assign(new Error(words), { code: "ECONNRESET" })
        : new ClosedBeforeAnswerError(words),
    );
  };
  socket.on("data", (chunk: Buffer) => {
    if (!pending) return close();
    pending.heard = true;
    try {
      if (pending.reader.push(chunk)) end(undefined);
    } catch (error) {
      end(error);
    }
  });
  // "close" follows.
  socket.on("error", () => undefined);
  socket.on("close", endEarly);

  const connection: Connection = {
    exchange({ bytes, max_bytes, until }) {
      const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
      const timer = setTimeout(() => end(tooLate()), left(until));
      pending = { reader: createAnswerReader(max_bytes), heard: false, timer, resolve, reject };
      if (open) socket.write(bytes);
      else endEarly();
      return promise;
    },
    isOpen: () => open,
    close,
  };
  return connection;
}

interface KeptConnections {
  take(key: string): Connection | undefined;
  keep(key: string, connection: Connection): void;
  close(): void;
}

function createKeptConnections(): KeptConnections {
  const kept = new Map<string, { connection: Connection; since: number }[]>();
  let count = 0;

  const sweep = (before: number): void => {
    for (const [key, connections] of kept) {
      const young = connections.filter(({ connection, since }) => connection.isOpen() && since >= before);
      for (const { connection, since } of connections) if (since < before) connection.close();
      count -= connections.length - young.length;
      if (young.length === 0) kept.delete(key);
      else kept.set(key, young);
    }
  };
  const sweeping = setInterval(() => sweep(performance.now() - IDLE_MS), SWEEP_MS);
  sweeping.unref();

  return {
    take(key) {
      for (;;) {
        const last = kept.get(key)?.pop();
        if (!last) return undefined;
        count -= 1;
        if (last.connection.isOpen()) return last.connection;
      }
    },
    keep(key, connection) {
      if (count >= MAX_KEPT) return connection.close();
      count += 1;
      const entry = { connection, since: performance.now() };
      const others = kept.get(key);
      if (others) others.push(entry);
      else kept.set(key, [entry]);
    },
    close() {
      clearInterval(sweeping);
      sweep(Number.POSITIVE_INFINITY);
    },
  };
}

function left(until: number): number {
  return Math.max(0, until - performance.now());
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(tooLate()), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

function tooLate(): Error {
  return new DOMException("The time is up.", "TimeoutError");
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
