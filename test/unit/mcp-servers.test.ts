import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createMcpHandler, fromJsonSchema, McpServer as Server } from "@modelcontextprotocol/server";
import { createMcpPool, type McpPool, type McpServer } from "../../src/ai/mcp.ts";
import type { Tool, ToolOutcome } from "../../src/trust/guard/tool.ts";
import { serverAt } from "../support/mcp-server.ts";

const EVERYTHING = fileURLToPath(
  import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"),
);
const FILESYSTEM = fileURLToPath(
  import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js"),
);
const MEMORY = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-memory/dist/index.js"));
const NEVER = new AbortController().signal;

/** Everybody's here, as starting servers takes longest. */
let pool: McpPool;
let folder: string;
beforeAll(async () => {
  pool = createMcpPool();
  folder = await mkdtemp(join(tmpdir(), "mailwright-mcp-"));
});
afterAll(async () => {
  await pool[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

describe.each(["stdio", "streamableHttp", "sse"] as const)(
  "the reference server for everything, over %s",
  (way) => {
    let tools: Map<string, Tool>;
    let stop: () => void;
    beforeAll(async () => {
      const started =
        way === "stdio" ? { server: program("everything", [EVERYTHING]), stop: () => {} } : await listen(way);
      ({ stop } = started);
      tools = await toolsOf(started.server);
    });
    afterAll(() => stop());
    const call = (name: string, args: Record<string, unknown> = {}): Promise<ToolOutcome> =>
      tools.get(name)?.call(args, NEVER) ?? Promise.reject(new Error(`no tool ${name}`));

    test("lists its tools and what they may do", () => {
      expect(tools.get("echo")).toMatchObject({ read_only: true, destructive: false, foreign: true });
      expect(tools.get("gzip-file-as-resource")).toMatchObject({ read_only: false });
      // These need what is not offered: a model, folders, a form.
      expect([...tools.keys()].filter((name) => /sampling|elicitation|roots/.test(name))).toEqual([]);
    });

    test("answers in every form", async () => {
      const [echo, image, data, blob] = await Promise.all([
        call("echo", { message: "Grüße" }),
        call("get-tiny-image"),
        call("get-structured-content", { location: "New York" }),
        call("get-resource-reference", { resourceType: "Blob", resourceId: 1 }),
      ]);
      expect(echo).toEqual({ ok: true, text: "Echo: Grüße", files: [] });
      expect(image?.files[0]).toMatchObject({ filename: "image-1.png", content_type: "image/png" });
      expect(
        Buffer.from(image?.files[0]?.bytes ?? [])
          .subarray(1, 4)
          .toString(),
      ).toBe("PNG");
      expect(JSON.parse(data?.text ?? "")).toMatchObject({ conditions: expect.any(String) });
      expect(blob?.files).toHaveLength(1);
    });

    test("makes progress, and takes faults of arguments as faults", async () => {
      const [long, sum] = await Promise.all([
        call("trigger-long-running-operation", { duration: 0.2, steps: 2 }),
        call("get-sum", { a: "x" }),
      ]);
      expect(long).toMatchObject({ ok: true, text: expect.stringContaining("completed") });
      expect(sum).toMatchObject({ ok: false, text: expect.stringContaining("a") });
    });
  },
);

test("a program sees PATH, HOME and its own variables, and what it shows of a secret is hidden", async () => {
  const server = program("environment", [EVERYTHING], { API_TOKEN: "very-secret-0123456789" });
  const outcome = await (await toolsOf(server)).get("get-env")?.call({}, NEVER);
  const seen = JSON.parse(outcome?.text ?? "") as Record<string, string>;
  expect(Object.keys(seen).sort()).toEqual(["API_TOKEN", "HOME", "PATH"]);
  expect(seen["API_TOKEN"]).toBe("[key]");
});

test("the reference server for files reads and writes where it may, and says where it may not", async () => {
  const tools = await toolsOf(program("files", [FILESYSTEM, folder]));
  expect(tools.get("read_text_file")).toMatchObject({ read_only: true });
  expect(tools.get("write_file")).toMatchObject({ read_only: false, destructive: true });
  const path = join(folder, "note.txt");
  expect(await tools.get("write_file")?.call({ path, content: "Hello" }, NEVER)).toMatchObject({ ok: true });
  expect(await readFile(path, "utf8")).toBe("Hello");
  expect(await tools.get("read_text_file")?.call({ path }, NEVER)).toMatchObject({ ok: true, text: "Hello" });
  const outside = await tools.get("read_text_file")?.call({ path: "/etc/passwd" }, NEVER);
  expect(outside).toMatchObject({ ok: false, text: expect.stringContaining("denied") });
});

test("the reference server for memory remembers from call to call", async () => {
  const env = { MEMORY_FILE_PATH: join(folder, "memory.jsonl") };
  const tools = await toolsOf(program("memory", [MEMORY], env));
  const entities = [{ name: "Ada", entityType: "person", observations: ["writes programs"] }];
  await tools.get("create_entities")?.call({ entities }, NEVER);
  const found = await tools.get("search_nodes")?.call({ query: "programs" }, NEVER);
  expect(found).toMatchObject({ ok: true, text: expect.stringContaining("Ada") });
});

describe("a server of the generation without sessions", () => {
  const seen: Request[] = [];
  const given_up = Promise.withResolvers<void>();
  const schema = (properties: object = {}) => fromJsonSchema({ type: "object", properties } as never);
  const handler = createMcpHandler(() => {
    const server = new Server({ name: "modern", version: "3" });
    const region = { region: { type: "string", "x-mcp-header": "Region" } };
    server.registerTool("where", { inputSchema: schema(region) }, (args) => ({
      content: [{ type: "text", text: JSON.stringify(args) }],
    }));
    server.registerTool(
      "ask",
      { inputSchema: schema() },
      () => ({ resultType: "input_required", requestState: "s" }) as never,
    );
    server.registerTool("hang", { inputSchema: schema() }, (_args, { mcpReq }) => {
      mcpReq.signal.addEventListener("abort", () => given_up.resolve());
      return new Promise<never>(() => {});
    });
    return server;
  });
  const http = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      seen.push(request);
      return handler.fetch(request);
    },
  });
  const here = () => serverAt(`http://127.0.0.1:${http.port}/mcp`);
  afterAll(() => http.stop(true));

  test("is spoken to without a handshake, and gets the headers that its schema asks for", async () => {
    const tools = await toolsOf(here());
    expect(await tools.get("where")?.call({ region: "eu" }, NEVER)).toMatchObject({
      ok: true,
      text: '{"region":"eu"}',
    });
    expect(seen.at(-1)?.headers.get("mcp-param-region")).toBe("eu");
    expect(seen.at(-1)?.headers.get("mcp-session-id")).toBeNull();
    expect(await pool.inspect(here(), NEVER)).toMatchObject({
      server_info: { name: "modern", version: "3" },
    });
  });

  test("cannot ask somebody something in the middle of a call", async () => {
    const outcome = await (await toolsOf(here())).get("ask")?.call({}, NEVER);
    expect(outcome).toMatchObject({ ok: false, text: expect.stringContaining("not possible from here") });
  });

  test("notices that nobody waits any longer", async () => {
    const run = new AbortController();
    const calling = (await toolsOf(here())).get("hang")?.call({}, run.signal);
    const reason = new Error("the run is over");
    setTimeout(() => run.abort(reason), 50);
    expect(await calling?.catch((error: unknown) => error)).toBe(reason);
    await given_up.promise;
  });

  test("says that its tools changed", async () => {
    await toolsOf(here());
    const before = seen.length;
    await toolsOf(here());
    expect(seen).toHaveLength(before);
    handler.notify.toolsChanged();
    while (seen.length === before) {
      await Bun.sleep(1);
      await toolsOf(here());
    }
  });
});

async function toolsOf(server: McpServer): Promise<Map<string, Tool>> {
  const listing = await pool.listTools(server, NEVER);
  if (!listing.ok) throw new Error(listing.message);
  return new Map(listing.tools.map((tool) => [tool.name, tool]));
}

function program(id: string, args: string[], env: Record<string, string> = {}): McpServer {
  const base = { PATH: "/usr/bin:/bin", HOME: folder };
  return {
    id,
    account: "ada",
    label: id,
    target: `mcp:${id}`,
    transport: { kind: "stdio", command: process.execPath, args, env: { ...base, ...env } },
  };
}

/** The reference server on a free port of loopback. */
async function listen(way: "streamableHttp" | "sse"): Promise<{ server: McpServer; stop: () => void }> {
  const free = Bun.serve({ port: 0, fetch: () => new Response() });
  const { port } = free;
  await free.stop(true);
  const child = Bun.spawn([process.execPath, EVERYTHING, way], {
    env: { PORT: String(port) },
    stdout: "ignore",
    stderr: "pipe",
  });
  for await (const chunk of child.stderr) if (new TextDecoder().decode(chunk).includes(String(port))) break;
  const server = serverAt(`http://127.0.0.1:${port}/${way === "sse" ? "sse" : "mcp"}`);
  return { server: { ...server, id: way }, stop: () => child.kill() };
}
