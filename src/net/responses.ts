import { AppError, codeOf, messageOf } from "../errors.ts";
import { BlockedAddressError, PACKED } from "./guarded-fetch.ts";
import type { Incoming } from "./incoming.ts";
import { refuseOwnFault } from "../lib/own-faults.ts";
import { DAY_SECONDS } from "../lib/durations.ts";

const MAX_RETRY_AFTER_SECONDS = DAY_SECONDS;

const FAULT_SENTENCES: Record<string, string> = {
  ECONNREFUSED:
    "Nothing answers at that address and port: see that the server runs, and that both are right.",
  ECONNRESET: "The connection broke off before the answer was complete.",
  EHOSTUNREACH: "There is no route to that address: see that the machine is on, and your network.",
  ENETUNREACH: "There is no route to that address: see to the network of this machine.",
  ENOTFOUND: "That host name does not exist.",
  ENODATA: "That host name has no address.",
  ESERVFAIL: "The name server could not look that host name up.",
  EREFUSED: "The name server refused to look that host name up.",
  EBADNAME: "That is not a host name.",
  ETIMEOUT: "The name server did not answer.",
  [PACKED]:
    "The answer is packed (`Content-Encoding`), though it was asked for as it is (`Accept-Encoding: identity`): see that the server, or a proxy before it, does not pack it.",
};

export interface NetworkFault {
  code: "blocked_address" | "timeout" | "cancelled" | "tls_error" | "unreachable";
  /** A whole sentence, without the host's name. */
  message: string;
}

/**
 * Returns the network fault in an error of `fetch` or of a body's reader; null if it was none. Throws NoHandlesError
 * for a fault of this machine.
 */
export function networkFault(error: unknown): NetworkFault | null {
  if (error instanceof BlockedAddressError) {
    return { code: "blocked_address", message: error.message };
  }
  if (!(error instanceof Error)) {
    return null;
  }
  refuseOwnFault(error);
  if (error.name === "TimeoutError") {
    return { code: "timeout", message: "The answer took too long." };
  }
  if (error.name === "AbortError") {
    return { code: "cancelled", message: "The request was cancelled." };
  }
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (/CERT|TLS|SSL|SIGNATURE|ISSUER|EPROTO/.test(code)) {
    return {
      code: "tls_error",
      message: `The server's TLS certificate or handshake was not accepted (${code}).`,
    };
  }
  return code === ""
    ? null
    : { code: "unreachable", message: FAULT_SENTENCES[code] ?? `Connecting failed (${code}).` };
}

/** Returns whether an error shows that no request was sent. */
export function wasNeverSent(error: unknown): boolean {
  return error instanceof BlockedAddressError || NOT_SENT.test(codeOf(error));
}

const NOT_SENT =
  /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|ENODATA|EREFUSED|EBADNAME|ETIMEOUT)$|CERT|ISSUER|SIGNATURE/;

/**
 * Returns whether an error status means that the request was not carried out (RFC 9110 §15.4 to §15.6). A 503 does not:
 * gateways also send it when the server behind them breaks off. After a 303, and in practice 301 and 302, the request
 * was carried out.
 */
export function saysUndone(status: number): boolean {
  return UNDONE.has(status) || (status >= 400 && status < 500 && status !== 408);
}

const UNDONE = new Set([307, 308, 501]);

/** Returns an error as a sentence for people; the runtime's messages may name options of its functions. */
export function networkWords(error: unknown): string {
  const fault = error instanceof AppError ? null : networkFault(error);
  return fault?.message ?? messageOf(error);
}

/**
 * Returns the first `limit` bytes of a body; the rest is never read. A large one waits for its turn if `incoming` is
 * given.
 */
export async function readCapped(
  response: Response,
  limit: number,
  incoming?: Incoming,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; truncated: boolean }> {
  if (isSurelyWithin(limit, response.headers)) {
    await incoming?.holds(Number(response.headers.get("content-length")));
    return { bytes: new Uint8Array(await response.arrayBuffer()), truncated: false };
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size > limit) {
      break; // which cancels the stream
    }
    await incoming?.holds(size);
  }
  const bytes = new Uint8Array(Buffer.concat(chunks));
  return { bytes: bytes.subarray(0, limit), truncated: size > limit };
}

/**
 * Returns whether a body is certainly within the limit and needs no stream, which would take 256 KB for the smallest.
 * The declared length says nothing about a compressed or chunked body.
 */
function isSurelyWithin(limit: number, headers: Headers): boolean {
  const length = headers.get("content-length");
  if (length === null || headers.has("content-encoding") || headers.has("transfer-encoding")) return false;
  return Number(length) <= limit;
}

/** Headers, or anything else with values by name. */
interface Named {
  get(name: string): string | null | undefined;
}

/**
 * Returns the seconds in Retry-After (RFC 9110 §10.2.3: seconds or a date), at most a day; null without a valid one.
 */
export function retryAfterSeconds(headers: Named): number | null {
  const value = headers.get("retry-after") ?? "";
  // Some servers send a fraction, which would be parsed as a date.
  const seconds = /^\d+(?:\.\d+)?$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? null : Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(0, Math.ceil(seconds)));
}
