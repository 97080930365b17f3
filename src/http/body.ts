import type { App } from "../app.ts";
import { AppError, invalid } from "../errors.ts";
import type { SentFile } from "../files/sent-file.ts";
import { type ReadCall, readCall } from "./call-body.ts";
import { badJson, readJson } from "./json-text.ts";
import { isFor, isLike } from "./request.ts";
import { waitLimit } from "../lib/wait-limit.ts";

const MB = 1_048_576;
const MAX_BODY_BYTES = MB;
const MAX_ROUTING_BODY_BYTES = 40 * MB;
const MAX_UPLOAD_BODY_BYTES = MB / 2;
const MAX_EVENT_BYTES = MB / 4;
const MAX_FIELDS_BYTES = MB / 16;
/** What any body may take, and the slowest line that its size is reckoned by: half a megabit a second. */
const BODY_SECONDS = 60;
const BODY_BYTES_PER_SECOND = MB / 16;
/** What the page that asks to confirm a connection sends. */
const CONFIRMATION = /^\/integrations\/[^/]+\/confirm\/?$/;
/** A longer call is read by a thread; a shorter one takes a few milliseconds at the worst. */
const IN_PLACE_BYTES = 262_144;
const READ_WITHIN_MS = 10_000;
/** What a body takes of the memory for all: its bytes, and what is made of them. */
const COPIES = 2;
const CROWDED_RETRY_SECONDS = 10;

/** A request whose body is read; `who` has its share of the memory. */
export interface Sent {
  app: Pick<App, "bodies" | "bodyMemory">;
  request: Request;
  who: string;
}

/**
 * What a request carries: the file of an upload, the fields of a page, the bytes of what is signed, else JSON. It counts
 * for who sent it until `forgetBody`.
 */
export async function readBody(sent: Sent): Promise<object | null> {
  const { request } = sent;
  if (isFor(request, "/billing/webhook")) return readBytes(sent, MAX_EVENT_BYTES);
  if (isLike(request, CONFIRMATION)) return readFields(sent);
  return isFor(request, "/contexts/upload") ? readForm(sent) : readJsonBody(sent);
}

/** The fields of a form without files, as a browser sends them; of those that share a name the last one counts. */
async function readFields(sent: Sent): Promise<object> {
  const text = (await readBytes(sent, MAX_FIELDS_BYTES)).toString("utf8");
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(sent.request.headers.get("content-type") ?? ""))
    throw badJson("The body must be a form: application/x-www-form-urlencoded.");
  const fields = [...new URLSearchParams(text)].filter(([name]) => !(name in Object.prototype));
  return Object.fromEntries(fields);
}

/** The parts of a form by their names (RFC 7578); those that share a name are a list. */
async function readForm(sent: Sent): Promise<object> {
  const bytes = await readBytes(sent, MAX_UPLOAD_BODY_BYTES);
  const form = await parseForm(bytes, sent.request.headers.get("content-type") ?? "");
  if (!form)
    throw invalid(
      "body.file",
      "missing",
      "The body must be a form: send the file as multipart/form-data, in a part named file.",
    );
  // In one pass: `getAll` for each name would take minutes where somebody sends every name they can.
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
 * The JSON object in a request's body, never more than the cap of its path in memory. Null without a body: not
 * every endpoint takes one, and the schema of one that does refuses null.
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

/**
 * A call of the endpoint for calls; `takeFiles` gives the files that came with it. Long ones are read in turn.
 */
export async function readCallBody(sent: Sent): Promise<object | null> {
  const bytes = await readJsonBytes(sent, MAX_ROUTING_BODY_BYTES);
  if (bytes === null) return null;
  const call = bytes.byteLength <= IN_PLACE_BYTES ? readCall(bytes) : await readOnThread(sent, bytes);
  if ("refusal" in call) throw badJson(call.refusal);
  files.set(sent.request, call.files);
  return call.body;
}

async function readOnThread({ app, who }: Sent, bytes: Buffer<ArrayBuffer>): Promise<ReadCall> {
  const job = { input: bytes, limitMs: READ_WITHIN_MS, transfer: [bytes.buffer] };
  const outcome = await app.bodies.run({ who }, () => job);
  return outcome.ok ? (outcome.output as ReadCall) : { refusal: "The body takes too long to read." };
}

const files = new WeakMap<Request, SentFile[]>();

/** What the attachments of a call held, in their order; it is given once, so that nobody holds it for longer. */
export function takeFiles(request: Request): SentFile[] {
  const taken = files.get(request) ?? [];
  files.delete(request);
  return taken;
}

const held = new WeakMap<Request, Disposable>();

/** Has what a body takes given back at the end of its request. */
export function holdBody(request: Request, piece: Disposable): void {
  held.set(request, piece);
}

/** For once nothing of a request's body is in use any more. */
export function forgetBody(request: Request): void {
  held.get(request)?.[Symbol.dispose]();
  held.delete(request);
  files.delete(request);
}

/** The bytes of a body; throws `payload_too_large` before more than `cap` of them are held, and `unavailable`. */
async function readBytes(sent: Sent, cap: number): Promise<Buffer<ArrayBuffer>> {
  const { request } = sent;
  const declared = declaredBytes(request);
  if (declared === undefined) return readUndeclared(sent, cap);
  if (declared > cap) throw tooLarge(cap);
  hold(sent, declared);
  // The server holds a body to the length it declares; a stream would take 256 KB for the smallest.
  using time = timeFor(declared);
  return Buffer.from(await Promise.race([request.arrayBuffer(), time.over]));
}

/** Reads a body that comes in chunks, and takes more memory as it grows. */
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

/** Undefined of a body that comes in chunks. */
function declaredBytes(request: Request): number | undefined {
  const declared = request.headers.get("content-length");
  if (declared !== null) return /^\d+$/.test(declared) ? Number(declared) : undefined;
  return request.body === null ? 0 : undefined;
}

/** In place of what is held for it so far. Before a body is read, for what is not read stays where it is. */
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

/** A body as it comes in; throws `payload_too_large` instead of a byte more than `cap`, and `request_timeout`. */
export async function* chunksOf(request: Request, cap: number): AsyncGenerator<Uint8Array> {
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

/** `over` is rejected when a body of so many bytes has taken too long: nobody may hold a request open at will. */
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
