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
  let waiting: Buffer = Buffer.alloc(0);
  let head: Head | undefined;
  let framing: Framing | undefined;
  const body: Buffer[] = [];
  let size = 0;
  let ended = false;

  const keep = (bytes: Buffer): void => {
    const wanted = bytes.subarray(0, limit - size);
    if (wanted.length > 0) body.push(wanted);
    size += wanted.length;
  };

  const take = (bytes: number): Buffer => {
    const taken = waiting.subarray(0, bytes);
    waiting = waiting.subarray(taken.length);
    return taken;
  };

  const readBody = (): boolean => {
    if (framing?.until === "close") keep(take(waiting.length));
    if (framing?.until === "length") {
      const taken = take(framing.left);
      framing.left -= taken.length;
      keep(taken);
      return framing.left === 0;
    }
    if (framing?.until === "chunks") return readChunks();
    return false;
  };

  /** Of RFC 9112 §7.1, each chunk once it is there whole; trailers are not read. */
  const readChunks = (): boolean => {
    for (;;) {
      const line_end = waiting.indexOf(CRLF);
      if (line_end < 0 && waiting.length > MAX_CHUNK_LINE_CHARS) throw new BadAnswerError("endless chunk");
      if (line_end < 0) return false;
      const bytes = chunkSize(waiting.toString("latin1", 0, line_end));
      if (bytes === 0) {
        const done = waiting.subarray(line_end).equals(Buffer.from(CRLF + CRLF));
        if (done) take(waiting.length);
        return done || waiting.indexOf(CRLF + CRLF, line_end) >= 0;
      }
      if (size + bytes > limit && waiting.length - line_end > limit - size) {
        keep(waiting.subarray(line_end + CRLF.length));
        return true;
      }
      if (waiting.length < line_end + bytes + 2 * CRLF.length) return false;
      take(line_end + CRLF.length);
      keep(take(bytes));
      take(CRLF.length);
    }
  };

  const readHead = (): boolean => {
    for (;;) {
      const end = waiting.indexOf(CRLF + CRLF);
      if ((end < 0 ? waiting.length : end) > MAX_HEAD_BYTES) throw new BadAnswerError("endless head");
      if (end < 0) return false;
      const read = parseHead(take(end + 2 * CRLF.length).toString("latin1", 0, end));
      // RFC 9110 §15.2: any number of interim answers may come before.
      if (read.status < 200) continue;
      framing = framingOf(read);
      head = read;
      return true;
    }
  };

  return {
    push(chunk) {
      waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk]);
      if (!head && !readHead()) return false;
      ended = readBody();
      return ended || size >= limit;
    },
    answer: () =>
      head ? { status: head.status, headers: head.headers, body: Buffer.concat(body) } : null,
    reusable: () => ended && waiting.length === 0 && head?.keeps_open === true,
  };
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
