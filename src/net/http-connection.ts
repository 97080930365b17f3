import { HTTPParser } from "node:_http_common";
import type { Socket } from "node:net";
import { type WaitLimit, waitLimit } from "../lib/wait-limit.ts";

const MAX_HEAD_BYTES = 32_768;
const SWITCHING_PROTOCOLS = 101;

export interface HttpAnswer {
  status: number;
  /** Headers by lower-case name. */
  headers: Map<string, string>;
  /** The body with its chunks joined; cut at the limit. */
  body: Buffer;
}

export interface HttpRequest {
  /** The request as sent, head and body. */
  text: string;
  /** Milliseconds until the end of the answer. */
  timeout_ms: number;
  /** How many of these milliseconds connecting may take. */
  connect_ms: number;
  /** Bytes of the answer's body that are read. */
  max_bytes: number;
}

/** A connection for one request after the other, one at a time (RFC 9112 §9.3). */
export interface HttpConnection {
  /**
   * Resolves with the answer once its status is known, with the part that came in time: a server that sent a status has
   * the request, whatever became of the rest. Rejects with what ended the connection, or with the parser's error.
   */
  send(request: HttpRequest): Promise<HttpAnswer>;
  /** How far the current or last request has come. */
  readonly heard: Heard;
  close(fault: Error): void;
}

/**
 * How far a request has come: `unsent` while no byte was written, `unanswered` until the first byte comes back. The
 * server may or may not have acted on an unanswered one; this side cannot know.
 */
export type Heard = "unsent" | "unanswered" | "answered";

interface Owner {
  /**
   * Called when an answer ended cleanly. Returns whether to keep the connection for another request; false closes it.
   */
  mayKeep: () => boolean;
  closed: () => void;
}

/** The request in progress and its answer. */
interface Exchange {
  request: HttpRequest;
  resolve: (answer: HttpAnswer) => void;
  reject: (fault: unknown) => void;
  /** Ends it when the time for the answer is up. */
  answering: WaitLimit;
  /** Ends it when the time for connecting is up; absent once connected. */
  connecting?: WaitLimit;
  /** All bytes received, with interim responses, trailers and chunk framing. */
  received_bytes: number;
  /** How many bytes of the body are still to be kept. */
  body_bytes_left: number;
  /** Alternating names and values. */
  raw_headers: string[];
  body: Buffer[];
  /** The status; 0 before it is known. */
  status: number;
  may_keep: boolean;
  is_complete: boolean;
}

/**
 * Speaks HTTP/1.1 over a socket that is being connected. `ready` is the name of the event that says it is connected.
 */
export function httpConnection(
  socket: Socket,
  ready: "connect" | "secureConnect",
  owner: Owner,
): HttpConnection {
  const parser = new HTTPParser();
  let current: Exchange | null = null;
  let is_ready = false;
  let heard: Heard = "unsent";
  let fault: Error | undefined;

  const end = (why: Error | undefined, may_keep = false): void => {
    const ended = current;
    current = null;
    if (!may_keep || socket.writableLength > 0 || !owner.mayKeep()) socket.destroy();
    if (ended) settle(ended, why);
  };
  const write = (exchange: Exchange): void => {
    // If the other side has ended, "close" is about to come.
    if (current !== exchange || socket.destroyed || socket.readableEnded) return;
    heard = "unanswered";
    socket.write(exchange.request.text);
  };
  const endAfter = (ms: number) => waitLimit(Math.max(0, ms), () => end(tooLate()));

  readInto(parser, () => current);
  socket.once(ready, () => {
    is_ready = true;
    if (!current) return;
    current.connecting?.clear();
    write(current);
  });
  socket.on("data", (part: Buffer) => {
    // The server sent data without a request.
    if (!current || heard === "unsent") return end(noAnswer("ECONNRESET"));
    heard = "answered";
    const ending = takePart(parser, current, part);
    if (ending) end(ending.fault, ending.may_keep);
  });
  socket.on("error", (error) => void (fault = error));
  socket.once("close", () => {
    owner.closed();
    end(fault ?? noAnswer("ECONNRESET"));
  });

  return {
    send(request) {
      const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
      const answering = endAfter(request.timeout_ms);
      const exchange: Exchange = { ...newExchange(request), resolve, reject, answering };
      current = exchange;
      heard = "unsent";
      parser.initialize(HTTPParser.RESPONSE, {}, MAX_HEAD_BYTES);
      if (is_ready) soon(() => write(exchange));
      else exchange.connecting = endAfter(request.connect_ms);
      return promise;
    },
    get heard() {
      return heard;
    },
    close: (why) => end(why),
  };
}

export function tooLate(): Error {
  return new DOMException("The time is up.", "TimeoutError");
}

export function noAnswer(code: string): Error {
  return Object.assign(new Error("The connection ended without an answer."), { code });
}

const unwritten: (() => void)[] = [];

/**
 * Writes together with everything else written in this turn of the event loop: waking the receiver takes longer than
 * writing, and is then needed once.
 */
function soon(write: () => void): void {
  if (unwritten.push(write) > 1) return;
  setImmediate(() => {
    for (const each of unwritten.splice(0)) each();
  });
}

function settle(exchange: Exchange, why: Error | undefined): void {
  exchange.answering.clear();
  exchange.connecting?.clear();
  if (exchange.status > 0) exchange.resolve(answerOf(exchange));
  else exchange.reject(why);
}

/** Processes a part of an answer; null when there is more to come. */
function takePart(
  parser: HTTPParser,
  exchange: Exchange,
  part: Buffer,
): { fault?: Error; may_keep: boolean } | null {
  exchange.received_bytes += part.length;
  const read = parser.execute(part);
  if (read instanceof Error) return { fault: read, may_keep: false };
  if (exchange.is_complete) return { may_keep: exchange.may_keep };
  if (exchange.body_bytes_left <= 0) return { may_keep: false };
  const is_over = exchange.received_bytes > exchange.request.max_bytes + MAX_HEAD_BYTES;
  return is_over ? { fault: noAnswer("EMSGSIZE"), may_keep: false } : null;
}

function newExchange(request: HttpRequest) {
  return {
    request,
    received_bytes: 0,
    body_bytes_left: request.max_bytes,
    raw_headers: [],
    body: [],
    status: 0,
    may_keep: false,
    is_complete: false,
  };
}

/** Has the parser fill in the current exchange. Interim responses are skipped (RFC 9110 §15.2). */
function readInto(parser: HTTPParser, current: () => Exchange | null): void {
  const unended = (): Exchange | null => {
    const exchange = current();
    return exchange?.is_complete === false ? exchange : null;
  };
  parser[HTTPParser.kOnMessageBegin] = () => {
    const exchange = current();
    // A second answer without a request.
    if (exchange?.is_complete === true) exchange.may_keep = false;
  };
  parser[HTTPParser.kOnHeaders] = (raw) => void unended()?.raw_headers.push(...raw);
  parser[HTTPParser.kOnHeadersComplete] = (...head) => {
    const [, , raw = [], , , status, , is_upgrade, may_keep] = head;
    const exchange = unended();
    if (!exchange) return 0;
    const is_interim = status < 200 && status !== SWITCHING_PROTOCOLS;
    exchange.raw_headers.push(...raw);
    if (is_interim) exchange.raw_headers = [];
    else Object.assign(exchange, { status, may_keep: may_keep && !is_upgrade });
    return is_upgrade ? 2 : 0;
  };
  parser[HTTPParser.kOnBody] = (part) => {
    const exchange = unended();
    exchange?.body.push(part);
    if (exchange) exchange.body_bytes_left -= part.length;
  };
  parser[HTTPParser.kOnMessageComplete] = () => {
    const exchange = current();
    if (exchange) exchange.is_complete ||= exchange.status > 0;
  };
}

function answerOf({ status, raw_headers, body, request }: Exchange): HttpAnswer {
  const headers = new Map<string, string>();
  for (let at = 0; at + 1 < raw_headers.length; at += 2)
    headers.set(raw_headers[at]?.toLowerCase() ?? "", raw_headers[at + 1] ?? "");
  return { status, headers, body: Buffer.concat(body).subarray(0, request.max_bytes) };
}
