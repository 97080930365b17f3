import type { HttpTransport, McpServer } from "../../src/ai/mcp.ts";
import { createSafeFetch } from "../../src/net/guarded-fetch.ts";

export interface RpcMessage {
  id?: number | string;
  method: string;
  params?: Record<string, unknown>;
}

export interface McpRequest {
  http: string;
  message: RpcMessage | null;
  headers: Record<string, string>;
  /** Aborts when the client hangs up. */
  signal: AbortSignal;
}

type Answer = Response | object | undefined;

export interface McpStandIn extends AsyncDisposable {
  url: string;
  requests: McpRequest[];
  /** The methods of all messages so far. */
  methods(): string[];
  /** Resolves with the first request, past or to come, that fits. */
  seen(fits: (request: McpRequest) => boolean): Promise<McpRequest>;
  /** What it is asked first about every request: a Response, the result of a call, or undefined for the usual. */
  handle: (request: McpRequest) => Answer | Promise<Answer>;
  tools: unknown[];
  session_id: string;
}

/** A tool server of the generation with handshake and sessions, which does as it is told, on a free loopback port. */
export function startMcpStandIn(handle: McpStandIn["handle"] = () => undefined, port = 0): McpStandIn {
  const waiting: { fits: (request: McpRequest) => boolean; resolve: (request: McpRequest) => void }[] = [];
  const server = Bun.serve({
    port,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (raw) => {
      const text = await raw.text();
      const message = text === "" ? null : (JSON.parse(text) as RpcMessage);
      const headers = Object.fromEntries(raw.headers);
      const request = { http: raw.method, message, headers, signal: raw.signal };
      standIn.requests.push(request);
      for (const one of waiting) if (one.fits(request)) one.resolve(request);
      const answer = await standIn.handle(request);
      if (answer instanceof Response) return answer;
      return answer === undefined ? usual(standIn, request) : rpc(request, answer);
    },
  });
  const standIn: McpStandIn = {
    url: `http://127.0.0.1:${server.port}/mcp`,
    requests: [],
    methods: () => standIn.requests.flatMap(({ message }) => message?.method ?? []),
    seen: (fits) =>
      new Promise((resolve) => {
        const past = standIn.requests.find(fits);
        if (past) resolve(past);
        else waiting.push({ fits, resolve });
      }),
    handle,
    tools: [tool("echo")],
    session_id: "session-1",
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return standIn;
}

export function tool(name: string, more: Record<string, unknown> = {}) {
  return { name, inputSchema: { type: "object" }, ...more };
}

/** As a connection would describe the server. */
export function serverAt(url: string, transport: Partial<HttpTransport> = {}): McpServer {
  const fetch = createSafeFetch({
    resolve: () => Promise.reject(new Error("no names here")),
    allow: ["127.0.0.1"],
  });
  const defaults = { kind: "http" as const, url, headers: {}, token: () => Promise.resolve(null), fetch };
  return {
    id: "c-1",
    account: "ada",
    label: "Calendar",
    target: "mcp:calendar",
    transport: { ...defaults, ...transport },
  };
}

/** A JSON answer to a request. */
export function rpc({ message }: McpRequest, result: object, headers: Record<string, string> = {}): Response {
  return Response.json({ jsonrpc: "2.0", id: message?.id, result }, { headers });
}

export function rpcError({ message }: McpRequest, code: number, words: string, status = 200): Response {
  return Response.json(
    { jsonrpc: "2.0", id: message?.id ?? null, error: { code, message: words } },
    { status },
  );
}

/** A stream of what is given, which then ends. */
export function events(...data: (string | object)[]): Response {
  const lines = data.map((one) => `data: ${typeof one === "string" ? one : JSON.stringify(one)}\n\n`);
  return new Response(lines.join(""), { headers: { "content-type": "text/event-stream" } });
}

function usual({ session_id, tools }: McpStandIn, request: McpRequest): Response {
  const { http, message, headers } = request;
  if (http === "GET") return new Response(null, { status: 405 });
  if (http === "DELETE") return new Response(null, { status: 204 });
  if (message?.method === "initialize") {
    const serverInfo = { name: "stand-in", version: "1" };
    const capabilities = { tools: { listChanged: true } };
    const result = { protocolVersion: "2025-11-25", capabilities, serverInfo };
    return rpc(request, result, { "mcp-session-id": session_id });
  }
  if (headers["mcp-session-id"] === undefined)
    return rpcError(request, -32_000, "Server not initialized", 400);
  if (headers["mcp-session-id"] !== session_id) return rpcError(request, -32_001, "Session not found", 404);
  if (message?.id === undefined) return new Response(null, { status: 202 });
  if (message.method === "tools/list") return rpc(request, { tools });
  if (message.method === "tools/call") {
    const { name, arguments: args } = message.params ?? {};
    return rpc(request, { content: [{ type: "text", text: `${String(name)} ${JSON.stringify(args)}` }] });
  }
  return rpcError(request, -32_601, "Method not found");
}
