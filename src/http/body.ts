import type { App } from "../app.ts";
import { AppError, invalid } from "../errors.ts";
import type { SentFile } from "../routing/files.ts";
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

/** What a request carries: the file of an upload, the fields of a page, the bytes of what is signed, else JSON. */
export async function readBody(request: Request): Promise<object | null> {
  if (isFor(request, "/billing/webhook")) return readBytes(request, MAX_EVENT_BYTES);
  if (isLike(request, CONFIRMATION)) return readFields(request);
  return isFor(request, "/contexts/upload") ? readForm(request) : readJsonBody(request);
}

/** The fields of a form without files, as a browser sends them; of those that share a name the last one counts. */
async function readFields(request: Request): Promise<object> {
  const text = (await readBytes(request, MAX_FIELDS_BYTES)).toString("utf8");
  if (!/^application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers.get("content-type") ?? ""))
    throw badJson("The body must be a form: application/x-www-form-urlencoded.");
  const fields = [...new URLSearchParams(text)].filter(([name]) => !(name in Object.prototype));
  return Object.fromEntries(fields);
}

/** The parts of a form by their names (RFC 7578); those that share a name are a list. */
async function readForm(request: Request): Promise<object> {
  const bytes = await readBytes(request, MAX_UPLOAD_BODY_BYTES);
  const form = await parseForm(bytes, request.headers.get("content-type") ?? "");
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
async function readJsonBody(request: Request): Promise<object | null> {
  const bytes = await readJsonBytes(request, MAX_BODY_BYTES);
  return bytes && readJson(bytes.toString("utf8"));
}

async function readJsonBytes(request: Request, cap: number): Promise<Buffer<ArrayBuffer> | null> {
  const bytes = await readBytes(request, cap);
  if (bytes.byteLength === 0) return null;
  if (!/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(request.headers.get("content-type") ?? ""))
    throw badJson("The body must be JSON: send the header Content-Type: application/json.");
  return bytes;
}

/**
 * A call of the routing endpoint; `filesSent` gives the files that came with it. Long ones are read one at a time, and
 * everybody's in turn.
 */
export async function readCallBody(app: App, request: Request, who: string): Promise<object | null> {
  const bytes = await readJsonBytes(request, MAX_ROUTING_BODY_BYTES);
  if (bytes === null) return null;
  const call = bytes.byteLength <= IN_PLACE_BYTES ? readCall(bytes) : await readOnThread(app, bytes, who);
  if ("refusal" in call) throw badJson(call.refusal);
  sent.set(request, call.files);
  return call.body;
}

async function readOnThread(app: App, bytes: Buffer<ArrayBuffer>, who: string): Promise<ReadCall> {
  const outcome = await app.bodyTurns({ who }, () => app.bodies.run(bytes, READ_WITHIN_MS, [bytes.buffer]));
  return outcome.ok ? (outcome.output as ReadCall) : { refusal: "The body takes too long to read." };
}

const sent = new WeakMap<Request, SentFile[]>();

/** What the attachments of a call held, in their order. */
export function filesSent(request: Request): SentFile[] {
  return sent.get(request) ?? [];
}

/** The bytes of a body; throws `payload_too_large` before more than `cap` of them are held. */
async function readBytes(request: Request, cap: number): Promise<Buffer<ArrayBuffer>> {
  const declared = request.headers.get("content-length");
  // The server holds a body to the length it declares; a stream would take 256 KB for the smallest.
  if (declared !== null && Number(declared) <= cap) {
    using time = timeFor(Number(declared));
    return Buffer.from(await Promise.race([request.arrayBuffer(), time.over]));
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of chunksOf(request, cap)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A body as it comes in; throws `payload_too_large` instead of a byte more than `cap`, and `request_timeout`. */
export async function* chunksOf(request: Request, cap: number): AsyncGenerator<Uint8Array> {
  const declared = Number(request.headers.get("content-length") ?? cap);
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
