/** A tool as its server describes and does it. */
export interface ServedTool {
  name: string;
  description?: string;
  inputSchema?: Record<string, unknown>;
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean };
  /** What comes of a call: a text, or a whole result. */
  run?: (args: Record<string, unknown>) => unknown;
}

export interface ToolServer extends AsyncDisposable {
  url: string;
  /** May be changed between requests. */
  tools: ServedTool[];
  /** What is said as it is to requests of a method: the members of the answer. */
  raw: Record<string, string>;
  /** Every call that was made, in order of arrival. */
  calls: { name: string; args: Record<string, unknown> }[];
}

interface Rpc {
  id?: number;
  method: string;
  params?: { name?: string; arguments?: Record<string, unknown>; protocolVersion?: string };
}

const ANY_OBJECT = { type: "object" };

/** A tool server (MCP over Streamable HTTP, without sessions) on a free loopback port. */
export function startToolServer(tools: ServedTool[]): ToolServer {
  const calls: ToolServer["calls"] = [];
  const server: ToolServer = {
    url: "",
    tools,
    raw: {},
    calls,
    [Symbol.asyncDispose]: () => http.stop(true),
  };
  const http = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (request) => {
      if (request.method !== "POST") return new Response(null, { status: 405 });
      const { id, method, params = {} } = (await request.json()) as Rpc;
      if (id === undefined) return new Response(null, { status: 202 });
      const raw = server.raw[method];
      if (raw !== undefined)
        return new Response(`{"jsonrpc":"2.0","id":${id},${raw}}`, {
          headers: { "content-type": "application/json" },
        });
      const result = await answerTo(server, method, params);
      if (result === undefined)
        return Response.json({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
      return Response.json({ jsonrpc: "2.0", id, result });
    },
  });
  server.url = `http://127.0.0.1:${http.port}/mcp`;
  return server;
}

async function answerTo(
  server: ToolServer,
  method: string,
  params: NonNullable<Rpc["params"]>,
): Promise<unknown> {
  if (method === "initialize") {
    const { protocolVersion } = params;
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "desk tools", version: "1" } };
  }
  if (method === "tools/list")
    return {
      tools: server.tools.map(({ name, description, annotations, inputSchema = ANY_OBJECT }) => ({
        name,
        description,
        annotations,
        inputSchema,
      })),
    };
  if (method !== "tools/call") return undefined;
  const { name = "", arguments: args = {} } = params;
  server.calls.push({ name, args });
  const said = (await server.tools.find((tool) => tool.name === name)?.run?.(args)) ?? "done";
  return typeof said === "string" ? { content: [{ type: "text", text: said }] } : said;
}
