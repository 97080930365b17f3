import type { StreamableHTTPClientTransportOptions, Transport } from "@modelcontextprotocol/client";
import type { Incoming } from "../net/incoming.ts";
import { member, parseJson } from "../lib/foreign-json.ts";
import { readCapped } from "../net/responses.ts";
import type { HttpTransport } from "./mcp.ts";
import {
  BROKE_OFF,
  fault,
  faultOf,
  type McpFault,
  needsAuth,
  networkFaultOf,
  refusalFault,
  type Speaker,
  type Why,
} from "./mcp-faults.ts";
import { addSecret } from "./mcp-secrets.ts";
import { answerFlow, capped, MAX_REFUSAL_BYTES, sessionFlow } from "./mcp-streams.ts";

/** Time limit of requests that nobody waits for, such as the notification that a call was cancelled. */
const NOTICE_MS = 5_000;
/** How many requests of a server, such as its pings, are answered at once; what it asks besides is not. */
const MAX_ANSWERS = 8;
/** Limits of the reconnection delay, whatever a server asks for. */
const RECONNECT_MS = { min: 250, max: 30_000 };
const MAX_RECONNECTS = 5;
/** JSON-RPC code for errors that a client raises itself. */
const LOCAL_ERROR = -32_000;

interface WireOptions {
  who: Speaker;
  /** Returns the current transport, since its credential may have changed. */
  transport: () => HttpTransport;
  incoming: () => Incoming;
  /** Called by the older SSE transport, whose session is its stream and whose errors say little about a refusal. */
  onStreamEnd?: (why: Why) => void;
}

/**
 * A session with a server over HTTP. Its fetch adds the credential and the connection's headers, requests another token
 * once if one was refused, limits what it reads, and aborts cancelled requests.
 */
export class HttpWire {
  /** Faults that ended the stream of an answer early, by request id. */
  readonly broken = new Map<string | number, McpFault>();
  /** Requests that wait for their answer, with what aborts them. */
  readonly #open = new Map<string | number, AbortController>();
  /** The limit of all long-lived streams of the session together. */
  readonly #session_flow = sessionFlow();
  readonly #options: WireOptions;
  /** How many answers to requests of the server are under way. */
  #answers = 0;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  readonly fetch = async (url: string | URL, init: RequestInit = {}): Promise<Response> => {
    const facts = requestOf(init);
    if (!facts.is_answer) return this.#send(url, init, facts);
    if (this.#answers >= MAX_ANSWERS) return new Response(null, { status: 202 });
    this.#answers += 1;
    try {
      return await this.#send(url, init, facts);
    } finally {
      this.#answers -= 1;
    }
  };

  async #send(
    url: string | URL,
    init: RequestInit,
    { id, cancels, is_notice }: RequestFacts,
  ): Promise<Response> {
    const { who, onStreamEnd } = this.#options;
    const incoming = this.#options.incoming();
    if (cancels !== undefined) this.#open.get(cancels)?.abort();
    const hangUp = new AbortController();
    if (id !== undefined) this.#open.set(id, hangUp);
    const signals = [hangUp.signal, incoming.signal, ...(init.signal ? [init.signal] : [])];
    if (is_notice) signals.push(AbortSignal.timeout(NOTICE_MS));
    const onEnd = (why?: Why): void => {
      if (id !== undefined) this.#open.delete(id);
      if (init.method !== "POST") onStreamEnd?.(why ?? fault(who, BROKE_OFF));
    };
    try {
      const response = await this.#ask(url, { ...init, signal: AbortSignal.any(signals) });
      if (onStreamEnd !== undefined && !response.ok) throw await refusalOf(who, response);
      if (is_notice && response.ok) return await withoutBody(response);
      const onTooLarge = (why: McpFault): void => {
        if (id !== undefined) this.broken.set(id, why);
        else if (init.method !== "POST") onStreamEnd?.(why);
      };
      const flow = init.method === "POST" ? answerFlow() : this.#session_flow;
      return capped(response, { who, flow, incoming, onEnd, onTooLarge });
    } catch (error) {
      onEnd(faultOf(who, error));
      throw error;
    }
  }

  async #ask(url: string | URL, init: RequestInit): Promise<Response> {
    const { who, transport } = this.#options;
    const token = await transport().token();
    const response = await this.#askWith(token, url, init);
    if (response.status !== 401) return response;
    await response.body?.cancel();
    const other = token === null ? null : await transport().token(token);
    if (other === null || other === token) throw needsAuth(who, token !== null);
    const second = await this.#askWith(other, url, init);
    if (second.status !== 401) return second;
    await second.body?.cancel();
    throw needsAuth(who, true);
  }

  async #askWith(token: string | null, url: string | URL, init: RequestInit): Promise<Response> {
    const { who, transport } = this.#options;
    if (token !== null) addSecret(who.secrets, token);
    const headers = headersOf(transport(), token, init.headers);
    try {
      return await transport().fetch(url, { ...init, headers, redirect: "manual" });
    } catch (error) {
      throw networkFaultOf(who, error) ?? error;
    }
  }
}

/** Ends a request whose answer broke off at once: the library would wait for its time-out. */
export function endBrokenRequests(transport: Transport, who: Speaker, { broken }: HttpWire): void {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    const id = "id" in message ? message.id : undefined;
    if (id === undefined || !("method" in message)) return send(message, options);
    const onRequestStreamEnd = (): void => {
      const data = broken.get(id) ?? fault(who, BROKE_OFF);
      broken.delete(id);
      // Has no effect if the answer had arrived.
      transport.onmessage?.({
        jsonrpc: "2.0",
        id,
        error: { code: LOCAL_ERROR, message: data.message, data },
      });
    };
    return send(message, { onRequestStreamEnd, ...options });
  };
}

/** Options for resuming streams: never as fast as a server likes. */
export const RECONNECTION: StreamableHTTPClientTransportOptions = {
  reconnectionOptions: {
    initialReconnectionDelay: 1_000,
    maxReconnectionDelay: RECONNECT_MS.max,
    reconnectionDelayGrowFactor: 2,
    maxRetries: MAX_RECONNECTS,
  },
  reconnectionScheduler: (reconnect, delay) => {
    const timer = setTimeout(reconnect, Math.min(Math.max(delay, RECONNECT_MS.min), RECONNECT_MS.max));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

interface RequestFacts {
  /** The id of a request that expects an answer. */
  id?: string | number;
  /** The id of the request that is cancelled. */
  cancels?: string | number;
  /** Nobody waits for what the server says to it. */
  is_notice: boolean;
  /** It answers a request of the server's. */
  is_answer?: boolean;
}

function requestOf({ method, body }: RequestInit): RequestFacts {
  if (method !== "POST" || typeof body !== "string") return { is_notice: method === "DELETE" };
  const message = parseJson(body);
  const id = idOf(member(message, "id"));
  const asks_for = member(message, "method");
  // Without a method it answers a request of the server, under the server's id.
  if (id !== undefined)
    return asks_for === undefined ? { is_notice: true, is_answer: true } : { id, is_notice: false };
  const cancels =
    asks_for === "notifications/cancelled" ? idOf(member(member(message, "params"), "requestId")) : undefined;
  return { ...(cancels === undefined ? {} : { cancels }), is_notice: true };
}

function idOf(id: unknown): string | number | undefined {
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}

/** Merges headers: those of the protocol take precedence over the connection's, and these over the token. */
function headersOf(transport: HttpTransport, token: string | null, own: RequestInit["headers"]): Headers {
  const headers = new Headers({ "user-agent": "Mailwright" });
  if (token !== null) headers.set("authorization", `Bearer ${token}`);
  for (const [name, value] of Object.entries(transport.headers)) headers.set(name, value);
  for (const [name, value] of new Headers(own)) headers.set(name, value);
  return headers;
}

/** Hangs up on what a server says to a notice, which may have no end. */
async function withoutBody({ body, status, headers }: Response): Promise<Response> {
  await body?.cancel();
  return new Response(null, { status, headers });
}

async function refusalOf(who: Speaker, response: Response): Promise<McpFault> {
  const { bytes } = await readCapped(response, MAX_REFUSAL_BYTES);
  return refusalFault(who, response.status, new TextDecoder().decode(bytes));
}
