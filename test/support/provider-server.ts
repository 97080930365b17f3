import type { ConnectionKind } from "../../src/resources/connections/kinds.ts";

type Kind = Exclude<ConnectionKind, "demo">;

export type ProviderFault =
  | "none"
  | "hang"
  | "drop"
  | "html"
  | "garbage"
  | "other_json"
  | "huge"
  | "redirect"
  | "forbidden"
  | "limited"
  | "not_found"
  | "broken";

export interface ProviderRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
  body: { id?: number; method?: string; params?: Record<string, unknown> } | null;
}

export interface ProviderServer extends AsyncDisposable {
  /** As a connection names it. */
  base_url: string;
  /** `http://127.0.0.1:port` */
  origin: string;
  /** May be changed between requests. */
  fault: ProviderFault;
  requests: ProviderRequest[];
}

interface ProviderOptions {
  /** Refuses every other one, in the provider's own words. */
  credential?: string;
  fault?: ProviderFault;
  /** The whole answer, in place of the provider's. */
  answer?: (request: ProviderRequest) => Response | Promise<Response>;
  /** Where the fault "redirect" leads. */
  location?: string;
  models?: number | string[];
  /** Models that it answers for by their names, and does not list. */
  unlisted?: string[];
  /** How an MCP server speaks. */
  mcp?: "json" | "sse" | "stateless";
}

const HUGE_BYTES = 2 * 1_048_576;

/** A stand-in for the part of a provider's interface that a connection test asks, on a free loopback port. */
export function startProvider(kind: Kind, options: ProviderOptions = {}): ProviderServer {
  const requests: ProviderRequest[] = [];
  const provider = PROVIDERS[kind];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (raw) => {
      const request = await record(raw);
      requests.push(request);
      const faulty = FAULTS[self.fault];
      if (faulty) return faulty(options);
      if (options.answer) return options.answer(request);
      const sent = provider.credentialIn(request.headers);
      const known = options.credential === undefined || sent === options.credential;
      if (!known && !provider.isOpen?.(request)) return provider.refusal(sent);
      return provider.answer(request, options) ?? notFound();
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;
  const self: ProviderServer = {
    base_url: `${origin}${provider.base}`,
    origin,
    fault: options.fault ?? "none",
    requests,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return self;
}

interface Provider {
  /** What follows the host in the base URL. */
  base: string;
  credentialIn(headers: Record<string, string>): string;
  refusal(sent: string): Response;
  /** Undefined for a path that the provider does not have. */
  answer(request: ProviderRequest, options: ProviderOptions): Response | undefined;
  /** What it shows to everybody. */
  isOpen?(request: ProviderRequest): boolean;
}

const bearer = (headers: Record<string, string>): string =>
  headers["authorization"]?.replace(/^Bearer /, "") ?? "";

function openAiLike(base: string): Provider {
  return {
    base,
    credentialIn: bearer,
    refusal: (sent) =>
      refusal(401, {
        error: {
          message: `Incorrect API key provided: ${sent.slice(0, 7)}*****${sent.slice(-4)}.`,
          type: "invalid_request_error",
          param: null,
          code: "invalid_api_key",
        },
      }),
    answer: ({ path }, { models = 3, unlisted = [] }) => {
      const shown = (id: string) => ({ id, object: "model", created: 1_767_225_600, owned_by: "x" });
      if (path === `${base}/models`) return Response.json({ object: "list", data: named(models, shown) });
      const model = unlisted.find((id) => path === `${base}/models/${id}`);
      return model === undefined ? undefined : Response.json(shown(model));
    },
  };
}

const PROVIDERS: Record<Kind, Provider> = {
  openai: openAiLike("/v1"),
  mistral: openAiLike("/v1"),
  groq: openAiLike("/openai/v1"),
  openai_compatible: openAiLike("/v1"),
  openrouter: {
    ...openAiLike("/api/v1"),
    isOpen: ({ path }) => path === "/api/v1/models",
    refusal: () => refusal(401, { error: { message: "User not found.", code: 401 } }),
    answer: (request, options) =>
      request.path === "/api/v1/key"
        ? Response.json({ data: { label: "sk-or-v1-116...0ce", limit: 5, usage: 0.1 } })
        : openAiLike("/api/v1").answer(request, options),
  },
  anthropic: {
    base: "/v1",
    credentialIn: (headers) => headers["x-api-key"] ?? "",
    refusal: () =>
      refusal(401, {
        type: "error",
        error: { type: "authentication_error", message: "invalid x-api-key" },
        request_id: "req_1",
      }),
    answer: ({ path, headers }, { models = 3 }) => {
      if (headers["anthropic-version"] !== "2023-06-01")
        return refusal(400, {
          type: "error",
          error: { type: "invalid_request_error", message: "anthropic-version: header is required" },
        });
      const data = named(models, (id) => ({
        type: "model",
        id,
        display_name: id,
        created_at: "2026-02-04T00:00:00Z",
      }));
      return path === "/v1/models"
        ? Response.json({ data, has_more: false, first_id: data[0]?.id, last_id: data.at(-1)?.id })
        : undefined;
    },
  },
  google: {
    base: "/v1beta/openai",
    credentialIn: (headers) => headers["x-goog-api-key"] ?? "",
    refusal: () =>
      refusal(400, {
        error: {
          code: 400,
          message: "API key not valid. Please pass a valid API key.",
          status: "INVALID_ARGUMENT",
          details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }],
        },
      }),
    answer: ({ path }, { models = 3 }) =>
      path === "/v1beta/models"
        ? Response.json({
            models: named(models, (id) => ({ name: `models/${id}`, version: "001", displayName: id })),
          })
        : undefined,
  },
  ollama: {
    base: "/v1",
    credentialIn: bearer,
    refusal: () => refusal(401, { error: "unauthorized" }),
    answer: ({ path }, { models = 3 }) =>
      path === "/api/tags"
        ? Response.json({ models: named(models, (id) => ({ name: id, model: id, size: 1, digest: "d" })) })
        : undefined,
  },
  notes: {
    base: "",
    credentialIn: bearer,
    refusal: () =>
      refusal(401, { object: "error", status: 401, code: "unauthorized", message: "API token is invalid." }),
    answer: ({ path, headers }) => {
      if (headers["notion-version"] === undefined)
        return refusal(400, {
          object: "error",
          status: 400,
          code: "missing_version",
          message: "Notion-Version header failed validation",
        });
      return path === "/v1/users/me"
        ? Response.json({
            object: "user",
            id: "16d84278-ab0e-484c-9bdd-b35da3bd8905",
            name: "Ada's notes",
            avatar_url: null,
            type: "bot",
            bot: { owner: { type: "workspace", workspace: true }, workspace_name: "Acme" },
          })
        : undefined;
    },
  },
  "codehost-a": {
    base: "",
    credentialIn: bearer,
    refusal: () =>
      refusal(401, {
        message: "Bad credentials",
        documentation_url: "https://docs.github.com/rest",
        status: "401",
      }),
    answer: ({ path, headers }) => {
      if (!headers["user-agent"])
        return refusal(403, { message: "Request forbidden by administrative rules." });
      return path === "/user" ? Response.json({ login: "octocat", id: 1, type: "User" }) : undefined;
    },
  },
  "codehost-b": {
    base: "",
    credentialIn: bearer,
    refusal: () => refusal(401, { message: "401 Unauthorized" }),
    answer: ({ path }) =>
      path === "/api/v4/user"
        ? Response.json({ id: 1, username: "ada.lovelace", name: "Ada", state: "active" })
        : undefined,
  },
  sheets: {
    base: "",
    credentialIn: bearer,
    refusal: () => refusal(401, { error: "invalid_request", error_description: "Invalid Credentials" }),
    answer: ({ path }) =>
      path === "/oauth2/v3/userinfo"
        ? Response.json({ sub: "1100", email: "ada@example.com", email_verified: true })
        : undefined,
  },
  mcp: {
    base: "/mcp",
    credentialIn: bearer,
    refusal: () =>
      refusal(
        401,
        { error: "invalid_token" },
        { "www-authenticate": 'Bearer resource_metadata="https://x.example/"' },
      ),
    answer: (request, { mcp = "json" }) => (request.path === "/mcp" ? answerMcp(request, mcp) : undefined),
  },
};

const SESSION = "session-1868a90c";

function answerMcp({ method, headers, body }: ProviderRequest, mode: "json" | "sse" | "stateless"): Response {
  if (mode === "stateless") return answerStateless(headers, body);
  if (body?.method === "initialize") return greeting(body, mode);
  const fault = sessionFault(headers);
  if (fault) return fault;
  if (method === "DELETE") return new Response(null, { status: 405 });
  if (body?.method === "notifications/initialized") return new Response(null, { status: 202 });
  const isFirst = body?.params?.["cursor"] === undefined;
  const tools = [{ name: isFirst ? "read_file" : "write_file", inputSchema: {} }];
  return framed(mode, body, isFirst ? { tools, nextCursor: "2" } : { tools });
}

function sessionFault(headers: Record<string, string>): Response | undefined {
  if (headers["mcp-session-id"] !== SESSION) return new Response("no session", { status: 404 });
  const isKnown = headers["mcp-protocol-version"] === "2025-06-18";
  return isKnown ? undefined : new Response("bad version", { status: 400 });
}

function greeting(body: ProviderRequest["body"], mode: "json" | "sse"): Response {
  const result = {
    protocolVersion: "2025-06-18",
    capabilities: { tools: {} },
    serverInfo: { name: "files", version: "1.2.3" },
  };
  const response = framed(mode, body, result);
  response.headers.set("mcp-session-id", SESSION);
  return response;
}

/** A server of the revision 2026-07-28, which knows neither a handshake nor sessions. */
function answerStateless(headers: Record<string, string>, body: ProviderRequest["body"]): Response {
  const meta = body?.params?.["_meta"] as Record<string, unknown> | undefined;
  if (meta?.["io.modelcontextprotocol/protocolVersion"] !== headers["mcp-protocol-version"] || !meta)
    return refusal(400, {
      jsonrpc: "2.0",
      id: body?.id,
      error: { code: -32_022, message: "Unsupported protocol version" },
    });
  if (headers["mcp-method"] !== body?.method)
    return refusal(400, { jsonrpc: "2.0", error: { code: -32_020, message: "Header mismatch" } });
  const result =
    body?.method === "server/discover"
      ? {
          supportedVersions: ["2026-07-28"],
          capabilities: { tools: {} },
          serverInfo: { name: "new", version: "2" },
        }
      : { tools: [{ name: "look_up" }] };
  return framed("json", body, { resultType: "complete", ...result });
}

/** As a stream it begins with what a client has to skip, in awkward pieces, and never ends by itself. */
function framed(mode: "json" | "sse", body: ProviderRequest["body"], result: object): Response {
  const answer = { jsonrpc: "2.0", id: body?.id, result };
  if (mode === "json") return Response.json(answer);
  const note = { jsonrpc: "2.0", method: "notifications/message", params: { data: "hello" } };
  const text = `: hi\r\n\r\nid: 1\r\ndata:\r\n\r\nevent: message\r\ndata: ${JSON.stringify(note)}\r\n\r\ndata: ${JSON.stringify(answer, null, 1).replaceAll("\n", "\r\ndata: ")}\r\n\r\n`;
  const pieces = new TextEncoder().encode(text);
  const stream = new ReadableStream({
    start(controller) {
      for (let at = 0; at < pieces.length; at += 7) controller.enqueue(pieces.slice(at, at + 7));
    },
  });
  return new Response(stream, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

const FAULTS: Partial<Record<ProviderFault, (options: ProviderOptions) => Response | Promise<Response>>> = {
  hang: () => new Promise<never>(() => undefined),
  drop: () => brokenOff('{"data": ['),
  html: () => new Response("<html><body>Welcome</body></html>", { headers: { "content-type": "text/html" } }),
  garbage: () => new Response('{"data": [', { headers: { "content-type": "application/json" } }),
  other_json: () => Response.json({ hello: "world" }),
  huge: () => Response.json({ data: "x".repeat(HUGE_BYTES) }),
  redirect: ({ location = "https://elsewhere.example/" }) =>
    new Response(null, { status: 307, headers: { location } }),
  forbidden: () => refusal(403, { error: { message: "This key may not list models." } }),
  limited: () => refusal(429, { error: { message: "Too many requests" } }, { "retry-after": "7" }),
  not_found: () => notFound(),
  broken: () => refusal(503, { error: { message: "We are down." } }),
};

function brokenOff(start: string): Response {
  let sent = false;
  const stream = new ReadableStream({
    pull: (controller) => {
      // Without an error object, which Bun would print as if it were a mistake.
      if (sent) return controller.error();
      sent = true;
      controller.enqueue(new TextEncoder().encode(start));
    },
  });
  return new Response(stream, { headers: { "content-type": "application/json" } });
}

async function record(request: Request): Promise<ProviderRequest> {
  const url = new URL(request.url);
  const text = await request.text();
  return {
    method: request.method,
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers: Object.fromEntries(request.headers),
    body: text === "" ? null : (JSON.parse(text) as ProviderRequest["body"]),
  };
}

function refusal(status: number, body: object, headers: Record<string, string> = {}): Response {
  return Response.json(body, { status, headers });
}

function notFound(): Response {
  return refusal(404, { error: { message: "Not Found" } });
}

function named<T>(models: number | string[], make: (id: string) => T): T[] {
  const names =
    typeof models === "number" ? Array.from({ length: models }, (_, index) => `model-${index + 1}`) : models;
  return names.map(make);
}
