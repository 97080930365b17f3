/** More than any server sends: what is longer is no answer. */
const MAX_HEAD_BYTES = 32_768;
const MAX_CHUNK_LINE_CHARS = 4_096;
const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: |$)/;
const CRLF = "\r\n";

export interface HttpAnswer {
  status: number;
  /** Names in lower case. */
  headers: Map<string, string>;
  /** As it came, its chunks put together; cut at the limit. */
  body: Buffer;
}

/** What came is no answer of HTTP/1.1. */
export class BadAnswerError extends Error {
  constructor(what: string) {
    super(`The answer is not HTTP/1.1: ${what}`);
    this.name = "BadAnswerError";
  }
}

/** Reads one answer to a POST (RFC 9112) as it comes in. */
export interface AnswerReader {
  /** Takes what came; true when the answer is complete, or as much of it as is wanted. Throws BadAnswerError. */
  push(chunk: Buffer): boolean;
  /** The answer as far as it came; null before the end of its head. */
  answer(): HttpAnswer | null;
  /** Whether the connection stands where another request can follow. */
  reusable(): boolean;
}

type Framing = { until: "length"; left: number } | { until: "chunks" } | { until: "close" };

/** `limit`: bytes of the body that are wanted. */
export function createAnswerReader(limit: number): AnswerReader {
  const reading: Reading = { waiting: Buffer.alloc(0), came: 0, body: [], size: 0, limit };
  let ended = false;
  return {
    push(chunk) {
      reading.came += chunk.length;
      reading.waiting = reading.waiting.length === 0 ? chunk : Buffer.concat([reading.waiting, chunk]);
      if (!reading.head && !readHead(reading)) {
        if (reading.came > MAX_HEAD_BYTES) throw new BadAnswerError("endless head");
        return false;
      }
      ended = readBody(reading);
      // What is no body counts as well: trailers, and all that may stand between the chunks.
      return ended || reading.size >= limit || reading.came > limit + MAX_HEAD_BYTES;
    },
    answer() {
      const { head, body } = reading;
      return head ? { status: head.status, headers: head.headers, body: Buffer.concat(body) } : null;
    },
    reusable: () => ended && reading.waiting.length === 0 && reading.head?.keeps_open === true,
  };
}

interface Reading {
  /** Came, and is not read yet. */
  waiting: Buffer;
  /** Bytes that came in all. */
  came: number;
  head?: Head;
  framing?: Framing;
  body: Buffer[];
  /** Of `body`; `limit` at the most. */
  size: number;
  limit: number;
}

function take(reading: Reading, bytes: number): Buffer {
  const taken = reading.waiting.subarray(0, bytes);
  reading.waiting = reading.waiting.subarray(taken.length);
  return taken;
}

function keep(reading: Reading, bytes: Buffer): void {
  const wanted = bytes.subarray(0, reading.limit - reading.size);
  if (wanted.length > 0) reading.body.push(wanted);
  reading.size += wanted.length;
}

/** Whether the head is there. */
function readHead(reading: Reading): boolean {
  for (;;) {
    const end = reading.waiting.indexOf(CRLF + CRLF);
    if ((end < 0 ? reading.waiting.length : end) > MAX_HEAD_BYTES) throw new BadAnswerError("endless head");
    if (end < 0) return false;
    const head = parseHead(take(reading, end + 2 * CRLF.length).toString("latin1", 0, end));
    // RFC 9110 §15.2: any number of interim answers may come before.
    if (head.status < 200) continue;
    reading.framing = framingOf(head);
    reading.head = head;
    return true;
  }
}

/** Whether the body has ended. */
function readBody(reading: Reading): boolean {
  const { framing, waiting } = reading;
  if (framing?.until === "chunks") return readChunks(reading);
  const taken = take(reading, framing?.until === "length" ? framing.left : waiting.length);
  keep(reading, taken);
  if (framing?.until !== "length") return false;
  framing.left -= taken.length;
  return framing.left === 0;
}

/** Of RFC 9112 §7.1, each chunk once it is there whole; trailers are not read. */
function readChunks(reading: Reading): boolean {
  for (;;) {
    const { waiting, size, limit } = reading;
    const line_end = waiting.indexOf(CRLF);
    if (line_end < 0 && waiting.length > MAX_CHUNK_LINE_CHARS) throw new BadAnswerError("endless chunk");
    if (line_end < 0) return false;
    const bytes = chunkSize(waiting.toString("latin1", 0, line_end));
    if (bytes === 0) return readLastChunk(reading, line_end);
    const begin = line_end + CRLF.length;
    if (size + bytes > limit && waiting.length - begin >= limit - size) {
      keep(reading, waiting.subarray(begin));
      return true;
    }
    if (waiting.length < begin + bytes + CRLF.length) return false;
    take(reading, begin);
    keep(reading, take(reading, bytes));
    take(reading, CRLF.length);
  }
}

/** With a trailer, it is left: nothing can follow on this connection. */
function readLastChunk(reading: Reading, line_end: number): boolean {
  const rest = reading.waiting.subarray(line_end);
  if (rest.equals(Buffer.from(CRLF + CRLF))) take(reading, reading.waiting.length);
  return rest.indexOf(CRLF + CRLF) >= 0 || reading.waiting.length === 0;
}

interface Head {
  status: number;
  headers: Map<string, string>;
  /** RFC 9112 §9.3. */
  keeps_open: boolean;
}

function parseHead(text: string): Head {
  const [first = "", ...lines] = text.split(CRLF);
  const [, minor, status] = STATUS_LINE.exec(first) ?? [];
  if (status === undefined) throw new BadAnswerError("no status line");
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon <= 0) throw new BadAnswerError("a header without a name");
    const name = line.slice(0, colon).toLowerCase();
    const before = headers.get(name);
    const value = line.slice(colon + 1).trim();
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const keeps_open = minor === "1" && !/\bclose\b/i.test(headers.get("connection") ?? "");
  return { status: Number(status), headers, keeps_open };
}

/** RFC 9112 §6.3. */
function framingOf({ status, headers }: Head): Framing {
  if (status === 204 || status === 304) return { until: "length", left: 0 };
  const coding = headers.get("transfer-encoding");
  if (coding !== undefined) return /\bchunked$/i.test(coding) ? { until: "chunks" } : { until: "close" };
  const length = headers.get("content-length");
  if (length === undefined) return { until: "close" };
  // The same length may be said more than once.
  const lengths = new Set(length.split(",").map((one) => one.trim()));
  const [only = ""] = lengths;
  if (lengths.size > 1 || !/^\d{1,15}$/.test(only)) throw new BadAnswerError("no such length");
  return { until: "length", left: Number(only) };
}

function chunkSize(line: string): number {
  const [, digits] = /^([0-9a-f]{1,12})[ \t]*(?:;|$)/i.exec(line) ?? [];
  if (digits === undefined) throw new BadAnswerError("a chunk without a size");
  return Number.parseInt(digits, 16);
}
