import type { App } from "../app.ts";
import { AppError, invalid } from "../errors.ts";
import type { SentFile } from "../files/sent-file.ts";
import { type ReadCall, readCall } from "./call-body.ts";
import { badJson, readJson } from "./json-text.ts";
import { isFor, isLike } from "./request.ts";
import { waitLimit } from "../lib/wait-limit.ts";
import { MB } from "../lib/sizes.ts";

const MAX_BODY_BYTES = MB;
const MAX_ROUTING_BODY_BYTES = 40 * MB;
const MAX_UPLOAD_BODY_BYTES = MB / 2;
const MAX_EVENT_BYTES = MB / 4;
const MAX_FIELDS_BYTES = MB / 16;
/** Time for any body, plus time for its size at the slowest rate allowed: half a megabit a second. */
const BODY_SECONDS = 60;
const BODY_BYTES_PER_SECOND = MB / 16;
/** The path of the form that confirms an OAuth connection. */
const CONFIRMATION = /^\/integrations\/[^/]+\/confirm\/?$/;
/** A longer call is parsed by a worker; a shorter one takes a few milliseconds at most. */
const IN_PLACE_BYTES = 262_144;
const READ_WITHIN_MS = 10_000;
/** Memory reserved for a body, as a multiple of its size: its bytes and what is parsed from them. */
const COPIES = 2;
const CROWDED_RETRY_SECONDS = 10;

/** A request whose body is read; its memory is reserved for the party `who`. */
export interface Sent {
  app: Pick<App, "bodies" | "bodyMemory">;
  request: Request;
  who: string;
}

/**
 * Returns the body of a request: the parts of an upload, the fields of a form, the bytes of a signed request, otherwise
 * the JSON object. Its memory stays reserved until `forgetBody`.
 */
export async function readBody(sent: Sent): Promise<object | null> {
  const { request } = sent;
  if (isFor(request, "/billing/webhook")) return readBytes(sent, MAX_EVENT_BYTES);
  if (isLike(request, CONFIRMATION)) return readFields(sent);
  return isFor(request, "/contexts/upload") ? readForm(sent) : readJsonBody(sent);
}

/**
 * Returns the fields of a form without files (application/x-www-form-urlencoded). The last of several fields with one
 * name counts.
 */
async function readFields(sent: Sent): Promise<object> {
  const text = (await readBytes(sent, MAX_FIELDS_BYTES)).toString("utf8");
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(sent.request.headers.get("content-type") ?? ""))
    throw badJson("The body must be a form: application/x-www-form-urlencoded.");
  const fields = [...new URLSearchParams(text)].filter(([name]) => !(name in Object.prototype));
  return Object.fromEntries(fields);
}

/** Returns the parts of a form by name (multipart/form-data, RFC 7578); parts with the same name become a list. */
async function readForm(sent: Sent): Promise<object> {
  const bytes = await readBytes(sent, MAX_UPLOAD_BODY_BYTES);
  const form = await parseForm(bytes, sent.request.headers.get("content-type") ?? "");
  if (!form)
    throw invalid(
      "body.file",
      "missing",
      "The body must be a form: send the file as multipart/form-data, in a part named file.",
    );
  // Groups in one pass: `getAll` for each name would take minutes for a hostile form with very many names.
  const parts = [...Map.groupBy(form, ([name]) => name)].map(([name, all]) => {
    const values = all.map(([, value]) => value);
    return [name, values.length === 1 ? values[0] : values] as const;
  });
  return Object.fromEntries(parts.filter(([name]) => !(name in Object.prototype)));
}

async function parseForm(bytes: Buffer<ArrayBuffer>, type: string) {
  if (!/^multipart\/form-data\s*;/i.test(type)) return undefined;
  try {
    return await new Response(bytes, { headers: { "content-type": type } }).formData();
  } catch {
    return undefined;
  }
}

/**
 * Returns the JSON object in a body of at most the size allowed for its path. Returns null without a body: not every
 * endpoint needs one, and the schema of one that does refuses null.
 */
async function readJsonBody(sent: Sent): Promise<object | null> {
  const bytes = await readJsonBytes(sent, MAX_BODY_BYTES);
  return bytes && readJson(bytes.toString("utf8"));
}

async function readJsonBytes(sent: Sent, cap: number): Promise<Buffer<ArrayBuffer> | null> {
  const bytes = await readBytes(sent, cap);
  if (bytes.byteLength === 0) return null;
  if (!/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(sent.request.headers.get("content-type") ?? ""))
    throw badJson("The body must be JSON: send the header Content-Type: application/json.");
  return bytes;
}

/** Returns the body of `POST /v1/messages`; `takeFiles` returns its files. Long bodies take turns with the workers. */
export async function readCallBody(sent: Sent): Promise<object | null> {
  const bytes = await readJsonBytes(sent, MAX_ROUTING_BODY_BYTES);
  if (bytes === null) return null;
  const call = bytes.byteLength <= IN_PLACE_BYTES ? readCall(bytes) : await readByWorker(sent, bytes);
  if ("refusal" in call) throw badJson(call.refusal);
  files.set(sent.request, call.files);
  return call.body;
}

async function readByWorker({ app, who }: Sent, bytes: Buffer<ArrayBuffer>): Promise<ReadCall> {
  const job = { input: bytes, limit_ms: READ_WITHIN_MS, transfer: [bytes.buffer] };
  const outcome = await app.bodies.run({ who }, () => job);
  if (outcome.ok) return outcome.output as ReadCall;
  if (outcome.problem !== "held_up") return { refusal: "The body takes too long to read." };
  throw new AppError("unavailable", "The server is too busy to read the body.", {
    fix: `Send it again in ${CROWDED_RETRY_SECONDS} seconds.`,
    retry_after_seconds: CROWDED_RETRY_SECONDS,
  });
}

const files = new WeakMap<Request, SentFile[]>();

/**
 * Returns the files of a call's attachments, in order. Only the first call returns them, so that they are not kept in
 * memory longer.
 */
export function takeFiles(request: Request): SentFile[] {
  const taken = files.get(request) ?? [];
  files.delete(request);
  return taken;
}

const held = new WeakMap<Request, Disposable>();

/** Registers a memory reservation to release when the request ends. */
export function holdBody(request: Request, piece: Disposable): void {
  held.set(request, piece);
}

/** Releases the memory reserved for a request's body. Must be called once nothing of it is in use. */
export function forgetBody(request: Request): void {
  held.get(request)?.[Symbol.dispose]();
  held.delete(request);
  files.delete(request);
}

/**
 * Returns the bytes of a body. Throws `payload_too_large` before more than `cap` of them are in memory, and
 * `unavailable` when too many large bodies arrive at once.
 */
async function readBytes(sent: Sent, cap: number): Promise<Buffer<ArrayBuffer>> {
  const { request } = sent;
  refuseCoding(request);
  const declared = declaredBytes(request);
  if (declared === undefined) return readUndeclared(sent, cap);
  if (declared > cap) throw tooLarge(cap);
  hold(sent, declared);
  // The server enforces the declared length. A stream would allocate 256 KB for the smallest body.
  using time = timeFor(declared);
  return Buffer.from(await Promise.race([request.arrayBuffer(), time.over]));
}

/** Reads a chunked body, and reserves more memory as it grows. */
async function readUndeclared(sent: Sent, cap: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  let room = Math.min(cap, IN_PLACE_BYTES);
  hold(sent, room);
  for await (const chunk of chunksOf(sent.request, cap)) {
    size += chunk.byteLength;
    if (size > room) {
      room = Math.min(cap, Math.max(size, 2 * room));
      hold(sent, room);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Refuses a packed body (RFC 9110 §8.4): its size says nothing of what would be unpacked from it. */
function refuseCoding({ headers }: Request): void {
  const coding = headers.get("content-encoding") ?? "identity";
  if (coding.toLowerCase() !== "identity")
    throw badJson("The body must not be packed: send it as it is, without the header Content-Encoding.");
}

/** Returns the Content-Length; undefined for a chunked body. */
function declaredBytes(request: Request): number | undefined {
  const declared = request.headers.get("content-length");
  if (declared !== null) return /^\d+$/.test(declared) ? Number(declared) : undefined;
  return request.body === null ? 0 : undefined;
}

/**
 * Reserves memory for a body in place of an earlier reservation. Called before reading, because unread data stays with
 * its sender.
 */
function hold({ app, request, who }: Sent, bytes: number): void {
  held.get(request)?.[Symbol.dispose]();
  const piece = app.bodyMemory.take(who, COPIES * bytes);
  if (!piece)
    throw new AppError("unavailable", "Too many large requests are coming in at once.", {
      fix: `Send it again in ${CROWDED_RETRY_SECONDS} seconds, and fewer large ones at the same time.`,
      retry_after_seconds: CROWDED_RETRY_SECONDS,
    });
  holdBody(request, piece);
}

/**
 * Yields a body as it arrives. Throws `payload_too_large` rather than yield more than `cap` bytes, and
 * `request_timeout`.
 */
export async function* chunksOf(request: Request, cap: number): AsyncGenerator<Uint8Array> {
  refuseCoding(request);
  const declared = declaredBytes(request) ?? cap;
  if (declared > cap) throw tooLarge(cap);
  if (!request.body) return;
  using time = timeFor(declared);
  const reader = request.body.getReader();
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), time.over]);
      if (done) return;
      size += value.byteLength;
      if (size > cap) throw tooLarge(cap);
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}

/**
 * Returns a timer whose `over` rejects when a body of this size has taken too long, so that nobody can hold a request
 * open at will.
 */
function timeFor(bytes: number): { over: Promise<never> } & Disposable {
  const seconds = BODY_SECONDS + Math.ceil(bytes / BODY_BYTES_PER_SECOND);
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = waitLimit(seconds * 1_000, () => reject(tooSlow(seconds)));
  return { over, [Symbol.dispose]: () => timer.clear() };
}

function tooSlow(seconds: number): AppError {
  return new AppError("request_timeout", `The body of this request did not come within ${seconds} seconds.`, {
    fix: "Send it again without pauses, with its Content-Length: a large body has more time.",
  });
}

function tooLarge(cap: number): AppError {
  return new AppError(
    "payload_too_large",
    `The request body is larger than ${cap < MB ? `${cap / 1_024} KB` : `${cap / MB} MB`}.`,
  );
}
