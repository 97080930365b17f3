import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Configuration, Provider } from "oidc-provider";

export interface GuardedMcp extends AsyncDisposable {
  /** Where the MCP server is. */
  url: string;
  issuer: string;
  /** Bodies of what was asked of the authorization server, by path. */
  asked: { path: string; body: string }[];
  /** Opens a consent page, signs in and agrees; the path and query that the browser is sent back to. */
  agree(authorize_url: string): Promise<string>;
}

/** An MCP server with two tools, and the authorization server that guards it: `oidc-provider` with registration, PKCE, resource indicators and rotation. */
export async function startGuardedMcp(): Promise<GuardedMcp> {
  const asked: GuardedMcp["asked"] = [];
  let provider: Provider | undefined;
  let handle: ReturnType<Provider["callback"]> | undefined;
  const http = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
  const address = http.address();
  const issuer = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  const mcp = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { pathname, origin } = new URL(request.url);
      if (pathname === "/.well-known/oauth-protected-resource/mcp")
        return Response.json({
          resource: `${origin}/mcp`,
          authorization_servers: [issuer],
          scopes_supported: ["tools:read"],
        });
      if (pathname !== "/mcp") return new Response("not found", { status: 404 });
      const bearer = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
      const token = bearer === "" ? undefined : await provider?.AccessToken.find(bearer);
      if (!token || token.aud !== `${origin}/mcp`)
        return new Response("", {
          status: 401,
          headers: {
            "www-authenticate": `Bearer error="invalid_token", resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`,
          },
        });
      return answerMcp(request);
    },
  });
  const resource = `http://127.0.0.1:${mcp.port}/mcp`;
  provider = new Provider(issuer, configurationFor(resource));
  handle = provider.callback();

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url?.split("?")[0] ?? "";
    if (path.startsWith("/interaction/")) {
      await provider?.interactionFinished(request, response, {
        login: { accountId: "ada" },
        consent: {},
      });
      return;
    }
    if (request.method === "POST") {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => asked.push({ path, body: Buffer.concat(chunks).toString() }));
    }
    await handle?.(request, response);
  }

  return {
    url: resource,
    issuer,
    asked,
    agree: browse,
    async [Symbol.asyncDispose]() {
      await mcp.stop(true);
      http.closeAllConnections();
      await new Promise((resolve) => void http.close(resolve));
    },
  };
}

function configurationFor(resource: string): Configuration {
  return {
    scopes: ["openid", "offline_access", "tools:read"],
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context, indicator) => {
          if (indicator !== resource) throw new Error("invalid_target");
          return {
            scope: "tools:read",
            audience: resource,
            accessTokenTTL: 3_600,
            accessTokenFormat: "opaque",
          };
        },
      },
    },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: (_context, client) => client.grantTypeAllowed("refresh_token"),
    cookies: { keys: ["a key for tests"] },
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    async loadExistingGrant(context) {
      const { client, session, provider } = context.oidc;
      const grant = new provider.Grant({
        clientId: client?.clientId ?? "",
        accountId: session?.accountId ?? "",
      });
      grant.addOIDCScope("openid offline_access tools:read");
      grant.addResourceScope(resource, "tools:read");
      await grant.save();
      return grant;
    },
  };
}

/** Follows redirects with cookies, as a browser does, until they lead away from loopback. */
export async function browse(start: string): Promise<string> {
  const cookies = new Map<string, string>();
  let url = start;
  for (let hop = 0; hop < 10; hop += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { redirect: "manual", headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      cookies.set(name, value);
    }
    const next = response.headers.get("location");
    if (next === null) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
    url = new URL(next, url).href;
    if (url.startsWith("http://mw.test/")) return url.slice("http://mw.test".length);
  }
  throw new Error(`${start} redirects for ever`);
}

/** The smallest MCP server that a ping is content with. */
export async function answerMcp(request: Request): Promise<Response> {
  if (request.method !== "POST") return new Response("", { status: 405 });
  const { id, method } = (await request.json()) as { id?: number; method: string };
  if (id === undefined) return new Response("", { status: 202 });
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "guarded", version: "1" },
    },
    "tools/list": { tools: [{ name: "look", inputSchema: { type: "object" } }] },
  };
  const result = results[method];
  return result
    ? Response.json({ jsonrpc: "2.0", id, result })
    : Response.json({ jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } });
}
