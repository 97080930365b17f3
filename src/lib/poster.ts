import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as requestHttp,
} from "node:http";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { isIP, type Socket } from "node:net";
import { type EgressRules, targetFor } from "./net.ts";

const MAX_ADDRESSES_TRIED = 3;
const MAX_HEAD_BYTES = 32_768;
/** Servers close an idle connection after 5 s or later; ours goes first, so that no request runs into that. */
const IDLE_MS = 3_000;
/** How often idle connections are looked at: one is closed at the second look that finds it unused. */
const LOOK_MS = IDLE_MS / 2;
/** Idle connections to one address. */
const MAX_KEPT = 64;
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

export interface HttpAnswer {
  status: number;
  /** Names in lower case. */
  headers: Map<string, string>;
  /** As it came, its chunks put together; cut at the limit. */
  body: Buffer;
}

/**
 * POSTs to addresses that users enter, by the rules of `createSafeFetch`. One that hangs holds up nobody: the calls of
 * `fetch` share 256 connections, the models' among them, and these here do not count.
 */
export interface Poster extends Disposable {
  /**
   * Resolves with the answer, as far as it came in time, once its status is known. Throws BlockedAddressError, an error
   * with the name "TimeoutError", or what the look-up, the connection or the parser threw: an answer with a bare LF or
   * a NUL in its head is none.
   */
  post(request: PostRequest): Promise<HttpAnswer>;
}

export function createPoster(rules: EgressRules): Poster {
  const targetOf = targetFor(rules);
  const kept = { keepAlive: true, maxFreeSockets: MAX_KEPT };
  const agents = { "http:": new HttpAgent(kept), "https:": new HttpsAgent(kept) };
  const looking = closeIdle(Object.values(agents));

  const exchange = async (line: Line, work: PostRequest, until: number): Promise<HttpAnswer> => {
    const first = begin(line, agents[line.url.protocol as keyof typeof agents]);
    try {
      return await answerTo(first, work, until);
    } catch (error) {
      // A kept connection was closed from the other side just then: nobody has read the request.
      if (!first.reusedSocket || codeOf(error) !== "ECONNRESET") throw error;
      return answerTo(begin(line, false), work, until);
    }
  };

  return {
    async post(work) {
      const until = performance.now() + work.timeout_ms;
      const url = new URL(work.url);
      const { addresses } = await within(work.timeout_ms, targetOf(url));
      const headers = rawHeaders(url, work);
      const tries = addresses.slice(0, MAX_ADDRESSES_TRIED);
      for (const [index, address] of tries.entries()) {
        try {
          return await exchange({ url, address, headers, ca: rules.ca }, work, until);
        } catch (error) {
          if (!NOT_CONNECTED.has(codeOf(error)) || index === tries.length - 1) throw error;
        }
      }
      throw new Error(`no address to dial for ${url.hostname}`);
    },
    [Symbol.dispose]() {
      clearInterval(looking);
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

interface Line {
  url: URL;
  address: string;
  headers: string[];
  ca: string | undefined;
}

/** A time-out of the agents' own would be set anew at every request, which takes a tenth of its time. */
function closeIdle(agents: HttpAgent[]): ReturnType<typeof setInterval> {
  const seen = new WeakMap<Socket, number>();
  const look = (): void => {
    const free = agents.flatMap(({ freeSockets }) => Object.values(freeSockets)).flat();
    for (const socket of free as Socket[]) {
      if (seen.get(socket) === socket.bytesRead) socket.destroy();
      seen.set(socket, socket.bytesRead);
    }
  };
  return setInterval(look, LOOK_MS).unref();
}

/** Names and values in turn, which node takes as they are: it builds no table of them. */
function rawHeaders({ host }: URL, { headers, body }: PostRequest): string[] {
  const length = String(Buffer.byteLength(body));
  return ["host", host, ...Object.entries(headers).flat(), "content-length", length];
}

/** The name is in Host and in the TLS handshake, and its certificate must be for it, whatever address is dialled. */
function begin({ url, address, headers, ca }: Line, agent: HttpAgent | false): ClientRequest {
  const name = url.hostname.replace(/^\[|\]$/g, "");
  const options = {
    method: "POST",
    host: address,
    port: url.port,
    path: url.pathname + url.search,
    headers,
    setHost: false,
    agent,
    maxHeaderSize: MAX_HEAD_BYTES,
  };
  if (url.protocol === "http:") return requestHttp(options);
  const trusted = ca === undefined ? {} : { ca };
  return requestHttps({ ...options, ...trusted, servername: isIP(name) === 0 ? name : "" });
}

/** Sends the body, and takes the answer up to the limits of `work`. */
function answerTo(request: ClientRequest, work: PostRequest, until: number): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const body: Buffer[] = [];
  let wanted = work.max_bytes;
  let answer: IncomingMessage | undefined;
  let fault: unknown;
  const endAfter = (ms: number) => setTimeout(() => request.destroy(tooLate()), Math.max(0, ms));
  const timers = [endAfter(until - performance.now())];

  request.once("socket", (socket: Socket) => {
    boundBytes(socket, request, work.max_bytes + MAX_HEAD_BYTES);
    if (!socket.connecting) return;
    const timer = endAfter(work.connect_ms);
    timers.push(timer);
    socket.once("encrypted" in socket ? "secureConnect" : "connect", () => clearTimeout(timer));
  });
  request.once("response", (response) => {
    answer = response;
    response.on("data", (part: Buffer) => {
      body.push(part);
      wanted -= part.length;
      if (wanted <= 0) request.destroy();
    });
  });
  request.once("error", (error) => {
    fault = error;
  });
  request.once("close", () => {
    for (const timer of timers) clearTimeout(timer);
    // The status decides: whoever has said it has the request, whatever became of the rest of the answer.
    if (answer) resolve(answerOf(answer, Buffer.concat(body).subarray(0, work.max_bytes)));
    else reject(fault ?? noAnswer("ECONNRESET"));
  });
  request.end(work.body);
  return promise;
}

/** Counts what is no body as well: interim answers, trailers, and all that may stand between the chunks. */
function boundBytes(socket: Socket, request: ClientRequest, limit: number): void {
  let came = 0;
  const count = (part: Buffer): void => {
    came += part.length;
    // Not at once: what came is about to be read.
    if (came > limit) setImmediate(() => request.destroy(noAnswer("EMSGSIZE")));
  };
  socket.on("data", count);
  request.once("close", () => socket.off("data", count));
}

function answerOf({ statusCode = 0, headers }: IncomingMessage, body: Buffer): HttpAnswer {
  return {
    status: statusCode,
    headers: new Map(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    body,
  };
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

function noAnswer(code: string): Error {
  return Object.assign(new Error("The connection ended without an answer."), { code });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}
