import type { App } from "../../app.ts";
import { parseJson } from "../../lib/foreign-json.ts";
import { readCapped } from "../../net/responses.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";

const REQUEST_TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 262_144;

export interface WireAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** The body as JSON; undefined if it is none. */
  json: unknown;
}

/**
 * Sends one request to a server that others have named, and reads its answer up to a bound. Redirects are not
 * followed.
 */
export async function askServer(app: App, url: string | URL, init: RequestInit = {}): Promise<WireAnswer> {
  const headers = new Headers(init.headers);
  headers.set("user-agent", "Mailwright");
  if (!headers.has("accept")) headers.set("accept", "application/json");
  const response = await app.fetch(url, {
    ...init,
    headers,
    signal: AbortSignal.any([timeoutSignal(REQUEST_TIMEOUT_MS), ...(init.signal ? [init.signal] : [])]),
  });
  const { bytes, truncated } = await readCapped(response, MAX_ANSWER_BYTES);
  const text = truncated ? "" : new TextDecoder().decode(bytes);
  return { status: response.status, headers: response.headers, text, json: parseJson(text) };
}
