import type { App } from "../app.ts";
import { AppError } from "../errors.ts";
import { byteStreamOf } from "../net/byte-stream.ts";
import { PORTION_BYTES } from "../lib/portions.ts";
import { warned } from "./warnings.ts";

/** What is not longer is handed over as a whole, and not counted. */
const SHORT_BYTES = 262_144;
/** How much is handed on at a time. */
const PIECE_BYTES = 65_536;
const CROWDED_RETRY_SECONDS = 10;

/** Headers of server-sent events, which proxies that gather answers would hold back for ever. */
export const STREAM_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** Whoever is answered has a share of the memory as `who`; `headers` are those that are set so far. */
interface Sent {
  who: string;
  headers: object;
}

/**
 * An answer in JSON whose length somebody else has a say in. A long one counts for `who` until it has been taken; throws
 * `unavailable` where they leave too many lying.
 */
export function jsonAnswer(app: App, { who, headers }: Sent, value: object): Response {
  const bytes = Buffer.from(JSON.stringify(warned(headers, value) ?? value));
  const size = bytes.byteLength;
  const body = size <= SHORT_BYTES ? bytes : countedStream(app, { who, size }, piecesOf(bytes));
  return jsonResponse(headers, body);
}

/** A list that is too long to be read at once: `portions` of it are read as fast as they are taken, and count as above. */
export function listAnswer(app: App, { who, headers }: Sent, portions: AsyncGenerator<object[]>): Response {
  return jsonResponse(headers, countedStream(app, { who, size: PORTION_BYTES }, listOf(portions)));
}

function jsonResponse(headers: object, body: ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>): Response {
  return new Response(body, {
    headers: { ...headers, "content-type": "application/json" } as Record<string, string>,
  });
}

/** Holds `size` bytes at a time, from now until all has been taken or nobody takes any more. */
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
    // The answer has begun: all that can be done is to break it off, which leaves nothing valid.
    onError: (error) => app.log.error({ err: error }, "an answer broke off"),
    async onLeave() {
      // Nothing else would, where no part has been asked for yet.
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
