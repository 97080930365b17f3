import { setImmediate as nextTurn } from "node:timers/promises";
import { MB } from "./sizes.ts";

/** Sending a message to a process copies it at once, so that a larger one would hold up whoever sends or receives it. */
const PIECE_BYTES = MB;

/** Where bytes that come by themselves belong: the names on the way to them from what holds the message, and how many they are. */
interface Hole {
  path: (string | number)[];
  bytes: number;
}

/** What goes from one process to another: a message, with what is still missing in it, or a piece of that. */
export type Sent = Whole | { piece: Uint8Array };

interface Whole {
  message: unknown;
  holes: Hole[];
}

/**
 * Sends a message whose arrays of bytes over `buffers` follow in pieces, in order. `send` is called for each piece in a
 * turn of the event loop of its own.
 */
export async function sendInPieces(
  send: (sent: Sent) => void,
  message: unknown,
  buffers: readonly ArrayBufferLike[],
): Promise<void> {
  if (buffers.length === 0) return send({ message, holes: [] });
  const found: { path: (string | number)[]; view: Uint8Array }[] = [];
  const rest = takeOut(message, ["message"], (path, view) => {
    if (!buffers.includes(view.buffer) || view.byteLength <= PIECE_BYTES) return false;
    found.push({ path, view });
    return true;
  });
  send({ message: rest, holes: found.map(({ path, view }) => ({ path, bytes: view.byteLength })) });
  for (const { view } of found)
    for (let at = 0; at < view.byteLength; at += PIECE_BYTES) {
      send({ piece: new Uint8Array(view.subarray(at, at + PIECE_BYTES)) });
      await nextTurn();
    }
}

/**
 * Returns a copy of a message without the arrays of bytes for which `take` returns true. Others are copied, because a
 * view takes the whole buffer below it along.
 */
function takeOut(
  value: unknown,
  path: (string | number)[],
  take: (path: (string | number)[], view: Uint8Array) => boolean,
): unknown {
  if (value instanceof Uint8Array) return take(path, value) ? null : new Uint8Array(value);
  if (Array.isArray(value)) return value.map((item, at) => takeOut(item, [...path, at], take));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, takeOut(member, [...path, name], take)]),
  );
}

/** Returns a function that takes what `sendInPieces` sent, and calls `onMessage` with each message once it is whole. */
export function createGathering(onMessage: (message: unknown) => void): (sent: Sent) => void {
  let whole: Whole = { message: undefined, holes: [] };
  let missing: { target: Uint8Array; filled: number }[] = [];
  return (sent) => {
    if ("piece" in sent) {
      const hole = missing[0];
      if (hole === undefined) throw new Error("A piece came that belongs to no message.");
      hole.target.set(sent.piece, hole.filled);
      hole.filled += sent.piece.byteLength;
      if (hole.filled === hole.target.byteLength) missing.shift();
    } else {
      whole = sent;
      missing = sent.holes.map(({ path, bytes }) => {
        const target = new Uint8Array(bytes);
        putIn(sent, path, target);
        return { target, filled: 0 };
      });
    }
    if (missing.length === 0) onMessage(whole.message);
  };
}

function putIn(whole: Whole, path: (string | number)[], target: Uint8Array): void {
  let holder = whole as unknown as Record<string | number, unknown>;
  for (const name of path.slice(0, -1)) holder = holder[name] as Record<string | number, unknown>;
  holder[path.at(-1) ?? ""] = target;
}
