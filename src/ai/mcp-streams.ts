import { setImmediate as nextTurn } from "node:timers/promises";
import type { Incoming } from "../net/incoming.ts";
import { JsonMeter } from "../lib/json-depth.ts";
import {
  BROKE_OFF,
  fault,
  type McpFault,
  networkFaultOf,
  type Speaker,
  TOO_LARGE,
  TOO_MANY_PARTS,
} from "./mcp-faults.ts";
import { MB } from "../lib/sizes.ts";

/** Bytes of the longest answer, and of the longest event of a stream, that are read. */
export const MAX_ANSWER_BYTES = 8 * MB;
export const MAX_REFUSAL_BYTES = 65_536;
/** Limits of a whole stream: many small events cost time as well. */
const MAX_STREAM_BYTES = 2 * MAX_ANSWER_BYTES;
const MAX_STREAM_EVENTS = 10_000;
/** Bytes and events that a stream which lasts as long as its session may bring each second. */
const SESSION_BYTES_PER_SECOND = 2 * MB;
const SESSION_EVENTS_PER_SECOND = 100;
/** Bytes that are read in one turn of the event loop. */
const PIECE_BYTES = 16_384;

/** Counts what arrived. Returns true once it is too much. */
type Flow = (bytes: number, events: number) => boolean;

interface Watch {
  who: Speaker;
  /** The limit of a stream. */
  flow: Flow;
  incoming: Incoming;
  onEnd: () => void;
  /** Called when a stream is too large, before its end. */
  onTooLarge: (why: McpFault) => void;
}

export function answerFlow(): Flow {
  return flowOf(0, 0);
}

export function sessionFlow(): Flow {
  return flowOf(SESSION_BYTES_PER_SECOND, SESSION_EVENTS_PER_SECOND);
}

/** Returns the same response, whose body fails when it becomes too large, and waits for its turn when it is large. */
export function capped(
  response: Response,
  { who, flow, incoming, onEnd: onClose, onTooLarge }: Watch,
): Response {
  const { status, statusText, headers } = response;
  const onEnd = (): void => {
    void incoming.holds(0);
    onClose();
  };
  if (response.body === null || status === 204) {
    onEnd();
    return response;
  }
  const is_stream = /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");
  const meter = is_stream ? eventMeter(flow) : byteMeter(response.ok ? MAX_ANSWER_BYTES : MAX_REFUSAL_BYTES);
  const reader = response.body.getReader();
  const next = pieces(reader);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const piece = await next();
        if (piece === undefined) {
          onEnd();
          return controller.close();
        }
        const { held, excess } = meter(piece);
        if (excess === undefined) {
          controller.enqueue(piece);
          return await incoming.holds(held);
        }
        const reason = fault(who, excess);
        if (is_stream) onTooLarge(reason);
        onEnd();
        controller.error(reason);
        await reader.cancel(reason);
      } catch (error) {
        onEnd();
        controller.error(networkFaultOf(who, error) === undefined ? error : fault(who, BROKE_OFF));
      }
    },
    async cancel(reason) {
      onEnd();
      await reader.cancel(reason);
    },
  });
  return new Response(body, { status, statusText, headers });
}

/** Returns a reader of a stream that takes one chunk a turn, so that a server that floods blocks nobody. */
function pieces(reader: { read: () => Promise<Read> }): () => Promise<Uint8Array | undefined> {
  let rest: Uint8Array = new Uint8Array();
  return async () => {
    if (rest.byteLength === 0) {
      const { done, value } = await reader.read();
      if (done || value === undefined) return undefined;
      rest = value;
    }
    const piece = rest.subarray(0, PIECE_BYTES);
    rest = rest.subarray(PIECE_BYTES);
    await nextTurn();
    return piece;
  };
}

interface Read {
  done: boolean;
  value?: Uint8Array | undefined;
}

/** Returns how much of a stream is held in memory, and a sentence if it is too much. */
type Meter = (chunk: Uint8Array) => { held: number; excess?: string | undefined };

function byteMeter(limit: number): Meter {
  const json = new JsonMeter();
  let size = 0;
  return (chunk) => {
    size += chunk.byteLength;
    if (size > limit) return { held: size, excess: TOO_LARGE };
    return { held: size, excess: json.take(chunk) ? TOO_MANY_PARTS : undefined };
  };
}

/** Counts from one empty line to the next (HTML standard §9.2.5), because one event is held in memory. */
function eventMeter(flow: Flow): Meter {
  const cut = eventCutter();
  let size = 0;
  let json = new JsonMeter();
  return (chunk) => {
    const [rest = chunk, ...starts] = cut(chunk);
    size += rest.byteLength;
    let has_many_parts = json.take(rest);
    for (const start of starts) {
      json = new JsonMeter();
      size = start.byteLength;
      has_many_parts = json.take(start) || has_many_parts;
    }
    const is_large = flow(chunk.byteLength, starts.length) || size > MAX_ANSWER_BYTES;
    return { held: size, excess: is_large ? TOO_LARGE : has_many_parts ? TOO_MANY_PARTS : undefined };
  };
}

/**
 * Returns a function that splits a stream's chunks at the ends of events; the first part completes an earlier event.
 */
function eventCutter(): (chunk: Uint8Array) => Uint8Array[] {
  let last = "\n".charCodeAt(0);
  return (chunk) => {
    const cuts: Uint8Array[] = [];
    let start = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at] ?? 0;
      const ends_line = byte === 13 || (byte === 10 && last !== 13);
      if (ends_line && (last === 10 || last === 13)) {
        cuts.push(chunk.subarray(start, at));
        start = at;
      }
      last = byte;
    }
    return [...cuts, chunk.subarray(start)];
  };
}

function flowOf(bytes_per_second: number, events_per_second: number): Flow {
  const bytes = bucket(MAX_STREAM_BYTES, bytes_per_second);
  const events = bucket(MAX_STREAM_EVENTS, events_per_second);
  return (more_bytes, more_events) => [bytes(more_bytes), events(more_events)].includes(true);
}

/** Returns a leaky bucket: adding returns true once it holds more than `most`; `per_second` leaks each second. */
function bucket(most: number, per_second: number): (amount: number) => boolean {
  let level = 0;
  let at = performance.now();
  return (amount) => {
    const now = performance.now();
    level = Math.max(0, level - ((now - at) / 1_000) * per_second) + amount;
    at = now;
    return level > most;
  };
}
