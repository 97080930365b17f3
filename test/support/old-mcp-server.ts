import { tool } from "./mcp-server.ts";

type Stream = ReadableStreamDefaultController<Uint8Array>;

/** A server as MCP 2024-11-05 describes it; `endpoint` is where it says that messages go. */
export function startOldStandIn(endpoint = "/message") {
  let stream: Stream | undefined;
  const say = (message: object): void => stream?.enqueue(bytes(`data: ${JSON.stringify(message)}\n\n`));
  const answer = (id: unknown, method: string): void => {
    if (method === "initialize") {
      const serverInfo = { name: "old", version: "1" };
      say(result(id, { protocolVersion: "2024-11-05", capabilities: { tools: {} }, serverInfo }));
    } else if (method === "tools/list") say(result(id, { tools: [tool("do")] }));
    else if (method === "tools/call" && stream && standIn.onCall) standIn.onCall(stream);
    else if (method === "tools/call") say(result(id, { content: [{ type: "text", text: "done" }] }));
  };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: async (request) => {
      standIn.tokens.add(request.headers.get("authorization") ?? "");
      const { pathname } = new URL(request.url);
      if (pathname === "/sse" && request.method === "GET") {
        standIn.streams += 1;
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            stream = controller;
            controller.enqueue(bytes(`event: endpoint\ndata: ${endpoint}\n\n`));
          },
        });
        return new Response(body, { headers: { "content-type": "text/event-stream" } });
      }
      if (pathname !== "/message") return new Response(null, { status: 405 });
      const { id, method } = (await request.json()) as { id: unknown; method: string };
      answer(id, method);
      return new Response("Accepted", { status: 202 });
    },
  });
  const standIn = {
    url: `http://127.0.0.1:${server.port}/sse`,
    streams: 0,
    tokens: new Set<string>(),
    onCall: undefined as ((stream: Stream) => void) | undefined,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return standIn;
}

function bytes(words: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(words);
}

function result(id: unknown, value: object) {
  return { jsonrpc: "2.0", id, result: value };
}
