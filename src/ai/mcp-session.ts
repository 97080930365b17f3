import type { Client, Transport } from "@modelcontextprotocol/client";
import { messageOf } from "../errors.ts";
import { unlessAborted } from "../lib/deadline.ts";
import type { Incoming } from "../net/incoming.ts";
import { headOf } from "../lib/text-length.ts";
import { VERSION } from "../lib/version.ts";
import type { HttpTransport, McpServer, StdioTransport } from "./mcp.ts";
import { fault, faultOf, McpFault, type Speaker, TOO_SLOW, type Why } from "./mcp-faults.ts";
import { endBrokenRequests, HttpWire, RECONNECTION } from "./mcp-http.ts";
import { StdioWire } from "./mcp-stdio.ts";
import { setResultsAside } from "./mcp-tools.ts";
import { NEVER_MS, waitLimit } from "../lib/wait-limit.ts";

/** How long to wait for the probe: a program that knows only the handshake may not answer anything before it. */
const STDIO_PROBE_MS = 4_000;
const GOODBYE_MS = 2_000;
/**
 * Status codes of the first request by which a server of the older SSE transport is recognized (MCP 2025-11-25,
 * Backwards Compatibility).
 */
const OTHER_TRANSPORT = new Set([400, 404, 405, 406, 410, 415, 422]);
const MAX_INFO_CHARS = 200;
const CLIENT_INFO = { name: "mailwright", version: VERSION };

type Library = typeof import("@modelcontextprotocol/client");

export interface Waits {
  connect_ms: number;
  list_ms: number;
  /** Time limit of a call that reports no progress. */
  call_ms: number;
  longest_call_ms: number;
  /** Time for a program to end after it was asked to. */
  end_ms: number;
}

export interface ServerInfo {
  name: string;
  version: string;
}

/** A session with a server after the handshake. */
export interface Session {
  client: Client;
  who: Speaker;
  waits: Waits;
  server_info: ServerInfo | null;
  /** Returns the fault for an error of the library, using what is known about the transport. */
  faultOf: (error: unknown) => Why;
  close: () => Promise<void>;
}

export interface SessionOptions {
  who: Speaker;
  /** Returns the server as currently stored, since its credential may have changed. */
  server: () => McpServer;
  /** Creates the limiter of one answer. */
  incoming: () => Incoming;
  waits: Waits;
  /** Aborts the opening. */
  signal: AbortSignal;
  onLost: () => void;
  onToolsChanged: () => void;
}

/** Opens a session. Throws McpFault or NoHandlesError. */
export async function openSession(given: SessionOptions): Promise<Session> {
  // Loaded at first use: most servers never need it.
  const library = await import("@modelcontextprotocol/client");
  const tooLate = new AbortController();
  const timer = waitLimit(given.waits.connect_ms, () => tooLate.abort(fault(given.who, TOO_SLOW)));
  const options = { ...given, signal: AbortSignal.any([given.signal, tooLate.signal]) };
  try {
    options.signal.throwIfAborted();
    return await openBy(library, options);
  } finally {
    timer.clear();
  }
}

function openBy(library: Library, options: SessionOptions): Promise<Session> {
  const { transport } = options.server();
  return transport.kind === "http" ? openHttp(library, options) : openStdio(library, options, transport);
}

async function openHttp(library: Library, options: SessionOptions): Promise<Session> {
  try {
    return await openStreamable(library, options);
  } catch (error) {
    if (!(error instanceof McpFault) || !OTHER_TRANSPORT.has(error.status ?? 0)) throw error;
    return openSse(library, options).catch((second: unknown) => {
      // The older transport failed too. Reports the first error, unless the second is 401, which shows that a server is
      // there.
      throw second instanceof McpFault && second.status === 401 ? second : error;
    });
  }
}

async function openStreamable(library: Library, options: SessionOptions): Promise<Session> {
  const { who, incoming } = options;
  const wire = new HttpWire({ who, incoming, transport: () => httpOf(options) });
  const url = new URL(httpOf(options).url);
  const transport = new library.StreamableHTTPClientTransport(url, { fetch: wire.fetch, ...RECONNECTION });
  endBrokenRequests(transport, who, wire);
  const sayGoodbye = async (): Promise<void> => {
    // Only a courtesy: servers expire sessions themselves.
    await Promise.race([transport.terminateSession().catch(() => undefined), shortTime()]);
  };
  return greet(library, options, { transport, sayGoodbye });
}

async function openSse(library: Library, options: SessionOptions): Promise<Session> {
  const lost = new AbortController();
  const onStreamEnd = (why: Why): void => {
    lost.abort(why);
    void transport.close();
  };
  const { who, incoming } = options;
  const wire = new HttpWire({ who, incoming, transport: () => httpOf(options), onStreamEnd });
  const transport = new library.SSEClientTransport(new URL(httpOf(options).url), { fetch: wire.fetch });
  const signal = AbortSignal.any([options.signal, lost.signal]);
  const whyClosed = (): Why | undefined => (lost.signal.aborted ? (lost.signal.reason as Why) : undefined);
  return greet(library, { ...options, signal }, { transport, whyClosed, is_old: true });
}

async function openStdio(
  library: Library,
  options: SessionOptions,
  program: StdioTransport,
): Promise<Session> {
  const { who, waits, incoming } = options;
  const { deserializeMessage: parse } = library;
  const wire = (): StdioWire =>
    new StdioWire({ who, program, parse, incoming: incoming(), end_ms: waits.end_ms });
  const first = wire();
  try {
    return await greet(library, options, { transport: first, whyClosed: () => first.ended });
  } catch (error) {
    // Some programs exit at the first message that is not the handshake.
    if (first.pid === null || messageOf(error) !== first.ended?.message) throw error;
    const second = wire();
    return greet(library, options, { transport: second, whyClosed: () => second.ended, is_old: true });
  }
}

interface Greeting {
  transport: Transport;
  /** Starts with the handshake, without probing whether the server can do without. */
  is_old?: boolean;
  sayGoodbye?: () => Promise<void>;
  whyClosed?: () => Why | undefined;
}

async function greet(library: Library, options: SessionOptions, greeting: Greeting): Promise<Session> {
  const { who, waits, signal } = options;
  const { transport, sayGoodbye, whyClosed } = greeting;
  const client = createClient(library, options, greeting);
  const explain = (error: unknown): Why => {
    const found = faultOf(who, error);
    return !(found instanceof McpFault) || found.unheard ? found : (whyClosed?.() ?? found);
  };
  setResultsAside(transport);
  const connected = client.connect(transport, { timeout: NEVER_MS });
  try {
    await unlessAborted(connected, signal);
    const ended = whyClosed?.();
    if (ended) throw ended;
  } catch (error) {
    const why = explain(error);
    connected.catch(() => undefined); // what it says after that is about its end
    await transport.close();
    throw why;
  }
  Object.assign(client, { onclose: options.onLost });
  return {
    client,
    who,
    waits,
    server_info: infoOf(client),
    faultOf: explain,
    close: async () => {
      await sayGoodbye?.();
      await client.close();
    },
  };
}

function createClient(
  { Client }: Library,
  { waits, onToolsChanged }: SessionOptions,
  greeting: Greeting,
): Client {
  // Over HTTP the opening has its own limit, which accounts for pauses of the process.
  const timeout_ms = "pid" in greeting.transport ? Math.min(STDIO_PROBE_MS, waits.connect_ms) : NEVER_MS;
  return new Client(CLIENT_INFO, {
    // No capabilities: servers cannot ask for a model, folders or forms.
    capabilities: {},
    inputRequired: { autoFulfill: false },
    versionNegotiation: greeting.is_old
      ? { mode: "legacy" }
      : { mode: "auto", probe: { timeoutMs: timeout_ms } },
    listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: onToolsChanged } },
    // Results go to a model as they are, so a server's schemas are never compiled.
    jsonSchemaValidator: {
      getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
    },
  });
}

function infoOf(client: Client): ServerInfo | null {
  const info = client.getServerVersion();
  if (info === undefined) return null;
  return { name: headOf(info.name, MAX_INFO_CHARS), version: headOf(info.version, MAX_INFO_CHARS) };
}

function shortTime(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, GOODBYE_MS).unref());
}

function httpOf({ server, who }: SessionOptions): HttpTransport {
  const { transport } = server();
  if (transport.kind !== "http") throw fault(who, "is another kind of server now.");
  return transport;
}
