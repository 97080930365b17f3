import { urlOf } from "../../lib/web-address.ts";
import type { Place } from "../../trust/guard/tool.ts";
import type { App } from "../../app.ts";
import { isStillAt } from "../connections/still-at.ts";
import { type ConnectionKind, KIND_INFO, ownBaseUrl } from "../connections/kinds.ts";
import { nameAt } from "../../ai/providers.ts";
import { openSealed } from "../connections/sealed.ts";
import type { ConnectionRow } from "../../db/schema.ts";
import { JsonExcess, parseForeign, whyNotParsed } from "../../lib/json-depth.ts";
import type { Incoming } from "../../net/incoming.ts";
import { networkFault, readCapped, saysUndone, wasNeverSent } from "../../net/responses.ts";
import type { Args } from "./api-arguments.ts";
import { ApiFault, refusalFault, type Speaker, tokenFault, wireFault } from "./api-faults.ts";
import { freshToken } from "./tokens.ts";
import { timeoutSignal } from "../../lib/wait-limit.ts";
import { MB } from "../../lib/sizes.ts";

const MAX_ANSWER_BYTES = 4 * MB;
/** The most parts of an answer: a page of notes may have a hundred blocks, each of many pieces of text. */
const MAX_ANSWER_PARTS = 100_000;
/** The longest name, id or escaped path in a URL. */
const MAX_PART_CHARS = 1_000;

/** What requests to the interface of one kind have in common. */
export interface ApiStyle {
  kind: ConnectionKind;
  /** The end of a base URL that belongs to another interface of the provider, or to `under`, and is left out. */
  without?: RegExp;
  /** The beginning of all paths. */
  under: string;
  /** The host of this interface by that of another, where the provider has one for each. */
  hosts?: Record<string, string>;
  headers: Record<string, string>;
  /** What to do about something that is missing, or hidden from the account. */
  missing: string;
  /** Whether the interface redirects to things that were renamed. */
  redirects: boolean;
  /** Whether groups may stand in groups, on a host whose places are called `owner/name`. */
  nested?: boolean;
}

export interface ApiRequest {
  method?: "GET" | "POST" | "PATCH";
  /** The parts of the path. They are encoded here, so that each stays one part whatever it holds. */
  path: string[];
  /** The method behind the last part, as Google has them: `append`. */
  verb?: string;
  query?: Record<string, string>;
  body?: unknown;
}

export interface ApiAnswer {
  data: unknown;
  headers: Headers;
}

/** Throws ApiFault for everything that the other side, the network or the arguments can do wrong. */
export type Ask = (request: ApiRequest) => Promise<ApiAnswer>;

/** A tool of an integration, before it is bound to a connection. None of them deletes or overwrites anything. */
export interface IntegrationTool {
  name: string;
  description: string;
  /** The JSON Schema of its arguments; see `closed`. */
  parameters: Record<string, unknown>;
  read_only: boolean;
  /**
   * Arguments that name the place where something is read or written, by which the guard judges a call: anybody may
   * file issues in a public repository.
   */
  places?: string[];
  /**
   * Arguments for a place and for the number in it of what is written to: anybody may have opened what has such a
   * number.
   */
  numbered?: { place: string; number: string };
  /** Arguments in which a name can call people and bots. */
  words?: string[];
  /** Arguments that people give by a title. */
  titled?: string[];
  /** Makes the call, and returns what the model reads. */
  run: (args: Args, ask: Ask, base: URL) => Promise<string | Told>;
}

/** A text for the model. */
export interface Told {
  text: string;
  /** The places that the text names. */
  places?: Place[];
  /** Where the text was read, as in a `ToolOutcome`; after a redirect that is unknown unless it is given here. */
  read?: (string | null)[];
}

/** What the tools of a connection need to make requests. */
export interface Api {
  app: App;
  row: ConnectionRow;
  style: ApiStyle;
  /** The time limit of each request. */
  timeout_ms: number;
}

/** One call of a tool. */
export interface Call {
  api: Api;
  base: URL;
  /** The headers of the connection. */
  headers: Record<string, string>;
  /** The tokens that were sent, which must not come back in an answer. */
  tokens: Set<string>;
  /** Whether a request was redirected to another place than it named. */
  redirected: boolean;
  /** Whether a request that changes something was sent, and was not refused. */
  changed: boolean;
  signal: AbortSignal;
}

export function openCall(api: Api, signal: AbortSignal): Call {
  const { app, row, style } = api;
  const base = baseOf(style, row.base_url ?? ownBaseUrl(app, style.kind));
  const { headers } = openSealed(app, row);
  return { api, base, headers, tokens: new Set(), redirected: false, changed: false, signal };
}

/** The URL of the interface, below the address of the connection or that of the operator. */
export function baseOf({ without = /$/, under, hosts = {} }: ApiStyle, base_url: string): URL {
  const base = new URL(base_url);
  base.hostname = hosts[base.hostname] ?? base.hostname;
  base.pathname = base.pathname.replace(/(?<!\/)\/+$/, "").replace(without, "") + under;
  return base;
}

export function asker(call: Call): Ask {
  const { app, row } = call.api;
  return async (request) => {
    const incoming = app.incoming(row.user_id);
    try {
      return await answerOf(call, { ...request, incoming });
    } finally {
      void incoming.holds(0);
    }
  };
}

type Asked = ApiRequest & { incoming: Incoming };

async function answerOf(call: Call, request: Asked): Promise<ApiAnswer> {
  const token = await tokenFor(call);
  const first = await send(call, request, token);
  if (first.response.status !== 401) return read(call, first);
  // The request was refused, so that sending it again does nothing twice.
  const second = await send(call, request, await tokenFor(call, token));
  if (second.response.status === 401) throw tokenFault(speakerOf(call));
  return read(call, second);
}

interface Sent {
  response: Response;
  text: string;
  truncated: boolean;
}

async function tokenFor(call: Call, refused?: string): Promise<string> {
  const { app, row } = call.api;
  const token = await freshToken(app, row.id, refused);
  // Checked after the token was read, so that no token goes to an address for which it was not entered.
  await refuseChanged(call.api);
  if (token === null) throw tokenFault(speakerOf(call));
  call.tokens.add(token);
  return token;
}

async function refuseChanged({ app, row, style }: Api): Promise<void> {
  if (!(await isStillAt(app.db, row)))
    throw new ApiFault(`The connection to ${KIND_INFO[style.kind].label} was changed or deleted. Ask again.`);
}

async function send(call: Call, request: Asked, token: string): Promise<Sent> {
  const url = addressFor(call.base, request);
  const sent = await exchange(call, url, { request, token });
  const target = redirectOf(call, url, { method: request.method ?? "GET", response: sent.response });
  if (target === null) return sent;
  call.redirected = true;
  return exchange(call, target, { request, token });
}

async function exchange(
  call: Call,
  url: URL,
  { request, token }: { request: Asked; token: string },
): Promise<Sent> {
  const { app, timeout_ms } = call.api;
  const { method = "GET", body, incoming } = request;
  const init = {
    method,
    headers: headersOf(call, token, body !== undefined),
    signal: AbortSignal.any([call.signal, incoming.signal, timeoutSignal(timeout_ms)]),
    redirect: "manual" as const,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  const changes = method !== "GET";
  try {
    const response = await app.fetch(url, init);
    call.changed ||= changes && (response.ok || !saysUndone(response.status));
    const { bytes, truncated } = await readCapped(response, MAX_ANSWER_BYTES, incoming);
    return { response, text: new TextDecoder().decode(bytes), truncated };
  } catch (error) {
    call.changed ||= changes && !wasNeverSent(error);
    const fault = networkFault(error);
    throw fault === null ? error : wireFault(speakerOf(call), fault);
  }
}

/** Headers that the interface needs replace those of the connection. */
function headersOf({ api, headers: own }: Call, token: string, has_body: boolean): Headers {
  const headers = new Headers({ accept: "application/json", "user-agent": "Mailwright" });
  const type: Record<string, string> = has_body ? { "content-type": "application/json" } : {};
  for (const part of [{ authorization: `Bearer ${token}` }, own, api.style.headers, type])
    for (const [name, value] of Object.entries(part)) headers.set(name, value);
  return headers;
}

function addressFor(base: URL, { path, verb, query = {} }: ApiRequest): URL {
  const url = new URL(base);
  const parts = path.map((part) => `/${encodedPart(part)}`).join("");
  url.pathname = folderOf(base).slice(0, -1) + parts + (verb === undefined ? "" : `:${verb}`);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value.toWellFormed());
  return url;
}

/** Parts that would climb the path: in the URL parser here, or at a server that reads escaped slashes as slashes. */
const CLIMBS = /(?:^|[\\/])\.{1,2}(?:[\\/]|$)/;

function encodedPart(part: string): string {
  if (part === "" || part.length > MAX_PART_CHARS || CLIMBS.test(part) || /[\p{Cc}\p{Cs}]/u.test(part)) {
    const shown = part.slice(0, 50).replaceAll(/[\p{Cc}\p{Cs}]/gu, "?");
    throw new ApiFault(`"${shown}" is no name or id that can be asked for.`);
  }
  return encodeURIComponent(part);
}

function folderOf(base: URL): string {
  return `${base.pathname.replace(/(?<!\/)\/+$/, "")}/`;
}

/**
 * The address of a redirect that is followed: only within the interface, which has the token already. RFC 9110 §15.4:
 * 307 and 308 keep the method, 301 may not.
 */
function redirectOf(
  { api, base }: Call,
  from: URL,
  { method, response }: { method: string; response: Response },
): URL | null {
  const { status, headers } = response;
  const follows = status === 307 || status === 308 || (status === 301 && method === "GET");
  if (!api.style.redirects || !follows) return null;
  const target = urlOf(headers.get("location") ?? "", from.href);
  if (target?.origin !== base.origin || target.username + target.password !== "") return null;
  return target.pathname.startsWith(folderOf(base)) ? target : null;
}

function read(call: Call, { response, text, truncated }: Sent): ApiAnswer {
  const speaker = speakerOf(call);
  if (!response.ok) throw refusalFault(speaker, response, text);
  if (truncated) throw new ApiFault(`${speaker.name} answered with more than 4 MB. Ask for less at once.`);
  try {
    return { data: parseForeign(text, MAX_ANSWER_PARTS), headers: response.headers };
  } catch (error) {
    const mend =
      error instanceof JsonExcess ? "Ask for less at once." : "Check the base URL of the connection.";
    throw new ApiFault(`${speaker.name} answered with ${whyNotParsed(text, error)}. ${mend}`);
  }
}

function speakerOf({ api, base, headers, tokens }: Call): Speaker {
  const { app, row, style } = api;
  return {
    name: nameAt(KIND_INFO[style.kind], row.base_url === null ? "" : base.href),
    missing: style.missing,
    oauth: row.auth === "oauth",
    now: app.now(),
    secrets: [...tokens, ...Object.values(headers)],
  };
}
