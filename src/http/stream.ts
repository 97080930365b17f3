import type { App } from "../app.ts";
import { AppError } from "../errors.ts";
import { byteStreamOf } from "../net/byte-stream.ts";
import { PORTION_BYTES } from "../lib/portions.ts";
import { warned } from "./warnings.ts";

/** Answers up to this size are sent at once, without reserving memory. */
const SHORT_BYTES = 262_144;
/** Bytes passed on at a time. */
const PIECE_BYTES = 65_536;
const CROWDED_RETRY_SECONDS = 10;

/** Headers of server-sent events; they stop proxies from buffering the events. */
export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** Memory for the answer is reserved for the party `who`; `headers` are those set so far. */
interface Sent {
  who: string;
  headers: object;
}

/**
 * Returns a JSON answer whose size depends on data from outside. A long one reserves memory for `who` until the client
 * has read it. Throws `unavailable` when the party has too many unread answers.
 */
export function jsonAnswer(app: App, { who, headers }: Sent, value: object): Response {
  const bytes = Buffer.from(JSON.stringify(warned(headers, value) ?? value));
  const size = bytes.byteLength;
  const body = size <= SHORT_BYTES ? bytes : countedStream(app, { who, size }, piecesOf(bytes));
  return jsonResponse(headers, body);
}

/**
 * Returns a list too long to read at once: `portions` are read as fast as the client takes them, and reserve memory as
 * above.
 */
export function listAnswer(app: App, { who, headers }: Sent, portions: AsyncGenerator<object[]>): Response {
  return jsonResponse(headers, countedStream(app, { who, size: PORTION_BYTES }, listOf(portions)));
}

function jsonResponse(headers: object, body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>): Response {
  return new Response(body, {
    headers: { ...headers, "content-type": "application/json" } as Record<string, string>,
  });
}

/** Reserves `size` bytes until the client has read everything or closed the connection. */
function countedStream(
  app: App,
  { who, size }: { who: string; size: number },
  parts: AsyncGenerator<Uint8Array>,
): ReadableStream<Uint8Array> {
  const piece = app.answerMemory.take(who, size);
  if (!piece)
    throw new AppError("unavailable", "Too many long answers have been asked for that nobody has read yet.", {
      fix: `Read those first, or ask again in ${CROWDED_RETRY_SECONDS} seconds.`,
      retry_after_seconds: CROWDED_RETRY_SECONDS,
    });
  return byteStreamOf(untilTaken(parts, piece), {
    // The status has been sent, so breaking off is the only signal left; it leaves invalid JSON.
    onError: (error) => app.log.error({ err: error }, "an answer broke off"),
    async onLeave() {
      // Releases the memory even when no part was ever read.
      piece[Symbol.dispose]();
      await parts.return(undefined);
    },
  });
}

async function* untilTaken(parts: AsyncGenerator<Uint8Array>, piece: Disposable): AsyncGenerator<Uint8Array> {
  using _piece = piece;
  yield* parts;
}

async function* piecesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

async function* listOf(portions: AsyncIterable<object[]>): AsyncGenerator<Uint8Array> {
  let mark = "[";
  for await (const portion of portions) {
    if (portion.length === 0) continue;
    yield Buffer.from(mark + portion.map((item) => JSON.stringify(item)).join(","));
    mark = ",";
  }
  yield Buffer.from(mark === "[" ? "[]" : "]");
}
