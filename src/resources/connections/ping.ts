import { saysBadKey } from "../../ai/llm-faults.ts";
import type { SafeFetch } from "../../net/guarded-fetch.ts";
import { parseForeign, whyNotParsed } from "../../lib/json-depth.ts";
import { quote, errorTextOf } from "../../lib/quote.ts";
import { networkFault, readCapped } from "../../net/responses.ts";
import type { ConnectionKind } from "./kinds.ts";
import { MB } from "../../lib/sizes.ts";

const MAX_ANSWER_BYTES = MB;
/** Limit of the parts of an answer: some providers list hundreds of models, and describe each at length. */
const MAX_ANSWER_PARTS = 100_000;

/** The outcomes of a ping, which are part of the API. */
export const PING_CODES = [
  "invalid_credentials",
  "forbidden",
  "unreachable",
  "tls_error",
  "timeout",
  "rate_limited",
  "blocked_address",
  "bad_response",
  "needs_auth",
  "no_credential",
  "model_not_found",
] as const;

export type PingCode = (typeof PING_CODES)[number];

/** What a ping (a test of a connection) contacts, with its secrets opened. */
export interface PingTarget {
  kind: ConnectionKind;
  /** Its name, with which the sentences about it begin. */
  name: string;
  base_url: string;
  credential: string;
  headers: Record<string, string>;
  /** Set if the credential came by OAuth, so that no key can be typed in. */
  oauth: boolean;
  fetch: SafeFetch;
  signal: AbortSignal;
}

/** What a ping found out; each kind of server tells something else. */
export interface Finding {
  detail: string;
  /** The names of all models; a verdict shows the first of them. */
  models: string[];
  account: string | null;
  server_info: { name: string; version: string } | null;
  tools: string[];
}

export const NOTHING_FOUND: Omit<Finding, "detail"> = {
  models: [],
  account: null,
  server_info: null,
  tools: [],
};

export interface PingRequest {
  url: URL | string;
  method?: "GET" | "POST" | "DELETE";
  /** The header with the credential; none when there is no credential. */
  credential: Record<string, string>;
  /** Headers of the protocol, which the connection's own headers cannot replace. */
  headers?: Record<string, string>;
  body?: string;
}

/** A ping that ended with a verdict other than "ok", on its way to `test-connection.ts`. */
export class PingFault extends Error {
  readonly fault: { code: PingCode; message: string; http_status: number | null };
  /** What was found out in spite of the fault. */
  readonly beside: Beside;

  constructor(code: PingCode, message: string, http_status: number | null = null, beside: Beside = {}) {
    super(message);
    this.name = "PingFault";
    this.fault = { code, message, http_status };
    this.beside = beside;
  }
}

export interface Beside {
  /** The models that there are, if the chosen one is not among them. */
  models?: string[];
  /** The address at which the interface was found, if it is not that of the connection. */
  suggested_base_url?: string;
}

/**
 * Sends a request, and returns a good answer with its body unread. Redirects are not followed: they could carry the
 * credential elsewhere.
 */
export async function ask(target: PingTarget, request: PingRequest): Promise<Response> {
  const { url, method = "GET", body } = request;
  const headers = new Headers({ accept: "application/json", "user-agent": "Mailwright" });
  for (const part of [target.credential === "" ? {} : request.credential, target.headers, request.headers])
    for (const [name, value] of Object.entries(part ?? {})) headers.set(name, value);
  const init = { method, headers, signal: target.signal, redirect: "manual" as const };
  return onTheWire(target, async () => {
    const response = await target.fetch(url, body === undefined ? init : { ...init, body });
    if (response.ok) return response;
    const { bytes } = await readCapped(response, MAX_ANSWER_BYTES);
    throw refusalFault(target, response, new TextDecoder().decode(bytes));
  });
}

/** Reads the JSON of an answer; throws PingFault for an answer that is too large, or none. */
export async function readJson(target: PingTarget, response: Response): Promise<unknown> {
  const { bytes, truncated } = await onTheWire(target, () => readCapped(response, MAX_ANSWER_BYTES));
  if (truncated) throw tooLarge(target, response.status);
  const text = new TextDecoder().decode(bytes);
  try {
    return parseForeign(text, MAX_ANSWER_PARTS);
  } catch (error) {
    throw notUnderstood(target, response.status, whyNotParsed(text, error));
  }
}

/** The data of each event of a stream (HTML standard §9.2.6), as they come; the stream may never end by itself. */
export async function* readEvents(target: PingTarget, response: Response): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let size = 0;
  let pieces: string[] = [];
  let data: string[] = [];
  try {
    for await (const chunk of response.body ?? []) {
      size += chunk.byteLength;
      if (size > MAX_ANSWER_BYTES) throw tooLarge(target, response.status);
      const [rest = "", ...starts] = decoder.decode(chunk, { stream: true }).split("\n");
      pieces.push(rest);
      for (const start of starts) {
        const line = pieces.join("").replace(/\r$/, "");
        pieces = [start];
        if (line.startsWith("data:")) data.push(line.slice("data:".length));
        if (line !== "") continue;
        const text = data.join("\n").trim();
        data = [];
        if (text !== "") yield text;
      }
    }
  } catch (error) {
    throw wireFault(target, error);
  }
}

/** The fault of a good status whose answer is not that of this kind of server. */
export function notUnderstood(target: PingTarget, status: number, what: string): PingFault {
  const message = `${target.name} answered with ${what}. Check that the address is the one of its interface.`;
  return new PingFault("bad_response", message, status);
}

/** Words of the other server in a form that may be shown: short, on one line, without secrets. */
export function said(target: PingTarget, words: string): string {
  const quoted = quote(words, secretsOf(target));
  return quoted === "" ? "" : ` It said: ${quoted}`;
}

function secretsOf({ credential, headers }: PingTarget): string[] {
  return [credential, ...Object.values(headers)];
}

async function onTheWire<T>(target: PingTarget, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw wireFault(target, error);
  }
}

/** An error of the network as a verdict; any other error as it is. */
function wireFault({ name }: PingTarget, error: unknown): unknown {
  const fault = error instanceof PingFault ? null : networkFault(error);
  if (fault === null) return error;
  if (fault.code === "timeout" || fault.code === "cancelled")
    return new PingFault("timeout", `${name} did not answer in time. Try again in a minute.`);
  return new PingFault(fault.code, `${name} could not be reached. ${fault.message}`);
}

function tooLarge(target: PingTarget, status: number): PingFault {
  return notUnderstood(target, status, "more than 1 MB");
}

function refusalFault(target: PingTarget, response: Response, body: string): PingFault {
  const { status } = response;
  if (status < 400) {
    const where = quote(response.headers.get("location") ?? "another address", secretsOf(target));
    const message = `${target.name} redirects to ${where}. Enter the final address instead.`;
    return new PingFault("bad_response", message, status);
  }
  const [code, sentence] = judge(target, response, body);
  return new PingFault(
    code,
    `${target.name} (${status}) ${sentence}${said(target, errorTextOf(body))}`,
    status,
  );
}

function judge(target: PingTarget, { status, headers }: Response, body: string): [PingCode, string] {
  if (saysBadKey(status, body)) return judgeUnauthorized(target, headers);
  // GitHub limits with status 403 and says so in its headers.
  const limited = headers.has("retry-after") || headers.get("x-ratelimit-remaining") === "0";
  if (status === 429 || (status === 403 && limited))
    return ["rate_limited", "is limiting this account's requests. Try again later."];
  if (status === 403) return ["forbidden", "does not allow this. Check what the credential may do."];
  if (status === 402) return ["forbidden", "has no credit left for this account. Top it up there."];
  if (status === 404 || status === 405)
    return ["bad_response", "has no such interface at this address. Check the address."];
  if (status >= 500) return ["bad_response", "has a fault of its own. If it lasts, see its status page."];
  return ["bad_response", "refused the request. Check the address and the headers."];
}

function judgeUnauthorized(target: PingTarget, headers: Headers): [PingCode, string] {
  if (target.oauth) return ["needs_auth", "does not accept the token any more. Connect it again."];
  // RFC 9728 §5.1: how an MCP server says that it can be authorised.
  if (target.kind === "mcp" && headers.has("www-authenticate"))
    return ["needs_auth", "asks for authorisation. Connect it, or enter a valid token."];
  if (target.credential === "" && Object.keys(target.headers).length === 0)
    return ["no_credential", "asks for a key, and this connection has none. Enter one."];
  return ["invalid_credentials", "did not accept the key. Enter another one in this connection."];
}
