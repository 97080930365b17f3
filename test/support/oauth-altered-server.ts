type Handler = (request: Request, origin: string) => Response | Promise<Response>;

export interface AlteredServer extends AsyncDisposable {
  origin: string;
  /** Where the MCP server is. */
  url: string;
  /** `GET /path`, in the order they came. */
  seen: string[];
  /** JSON bodies of registrations. */
  registrations: Record<string, unknown>[];
  /** The last request for a token. */
  exchange: { authorization: string | null; body: URLSearchParams } | null;
  /** What is answered at a path, in place of what a good server says there. */
  routes: Record<string, Handler>;
}

/** An MCP server and its authorization server at one origin; both answer as they should where a test has altered nothing. */
export function startAlteredServer(): AlteredServer {
  const seen: string[] = [];
  const registrations: Record<string, unknown>[] = [];
  const good: Record<string, Handler> = {
    "/mcp": () => unauthorized('Bearer realm="mcp"'),
    "/.well-known/oauth-protected-resource/mcp": (_request, origin) =>
      Response.json({ resource: `${origin}/mcp`, authorization_servers: [origin] }),
    "/.well-known/oauth-authorization-server": (_request, origin) => Response.json(metadataOf(origin)),
    "/register": async (request) => {
      registrations.push((await request.json()) as Record<string, unknown>);
      return Response.json({ client_id: "made" }, { status: 201 });
    },
    "/token": async (request) => {
      const authorization = request.headers.get("authorization");
      state.exchange = { authorization, body: new URLSearchParams(await request.text()) };
      return Response.json({ access_token: "a-token", token_type: "Bearer", expires_in: 60 });
    },
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { pathname, origin } = new URL(request.url);
      seen.push(`${request.method} ${pathname}`);
      const handler = state.routes[pathname] ?? good[pathname];
      return handler ? handler(request, origin) : new Response("not found", { status: 404 });
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;
  const state: AlteredServer = {
    origin,
    url: `${origin}/mcp`,
    seen,
    registrations,
    exchange: null,
    routes: {},
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return state;
}

export function unauthorized(challenge: string): Response {
  return new Response("", { status: 401, headers: { "www-authenticate": challenge } });
}

/** RFC 8414, of an issuer whose endpoints are at its origin. */
export function metadataOf(issuer: string, change: Record<string, unknown> = {}) {
  const { origin } = new URL(issuer);
  return {
    issuer,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    response_types_supported: ["code"],
    code_challenge_methods_supported: ["S256"],
    ...change,
  };
}
