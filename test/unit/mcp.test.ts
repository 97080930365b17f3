import { describe, expect, test } from "bun:test";
import { createMcpPool, type McpPool, type McpServer } from "../../src/ai/mcp.ts";
import type { Tool, ToolOutcome } from "../../src/trust/guard/tool.ts";
import { AppError } from "../../src/errors.ts";
import { createIncoming } from "../../src/net/incoming.ts";
import {
  events,
  type McpRequest,
  type McpStandIn,
  rpc,
  rpcError,
  serverAt,
  startMcpStandIn,
  tool,
} from "../support/mcp-server.ts";
import { startOldStandIn } from "../support/old-mcp-server.ts";
import { until } from "../support/until.ts";
import { MB } from "../../src/lib/sizes.ts";

const NEVER = new AbortController().signal;
const QUICK_CALLS = { call_ms: 300, longest_call_ms: 600 };
const QUICK = { connect_ms: 300, list_ms: 300, ...QUICK_CALLS };

describe("a session", () => {
  test("is opened at the first use, kept for the next, and ended with the pool", async () => {
    await using server = startMcpStandIn();
    const pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    expect(await call({ a: 1 })).toEqual({ ok: true, text: 'echo {"a":1}', files: [] });
    await call({ a: 2 });
    expect(count(server, "initialize")).toBe(1);
    await pool[Symbol.asyncDispose]();
    expect(server.requests.at(-1)).toMatchObject({
      http: "DELETE",
      headers: { "mcp-session-id": server.session_id },
    });
    expect((await call({})).text).toContain("about to stop");
  });

  test("answers few of what a server asks at once, and reads nothing of what it says to an answer", async () => {
    const pings = Array.from({ length: 3_000 }, (_, id) => ({ jsonrpc: "2.0", id, method: "ping" }));
    let [open, most, answers, hung_up] = [0, 0, 0, 0];
    await using server = startMcpStandIn(({ message, signal }) => {
      if (message?.method === "tools/call") return events(...pings, result(message.id, { content: [] }));
      if (message === null || message.method !== undefined) return undefined;
      answers += 1;
      open += 1;
      most = Math.max(most, open);
      signal.addEventListener("abort", () => {
        open -= 1;
        hung_up += 1;
      });
      return streamOf("data: ", "y".repeat(MB));
    });
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    expect((await call({})).ok).toBe(true);
    await until(() => hung_up === answers);
    expect(answers).toBeGreaterThan(0);
    // The server learns a little later that it was hung up on.
    expect([answers < 600, most < 100]).toEqual([true, true]);
  });

  test("is shared by those who ask at the same time", async () => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool();
    const listings = await Promise.all([1, 2, 3].map(() => pool.listTools(serverAt(server.url), NEVER)));
    expect(listings.map(({ ok }) => ok)).toEqual([true, true, true]);
    expect(count(server, "initialize")).toBe(1);
  });

  test("ends when nobody used it for a while", async () => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool({ idle_ms: 20 });
    const { call } = await only(pool, serverAt(server.url));
    await server.seen(({ http }) => http === "DELETE");
    expect((await call({})).ok).toBe(true);
    expect(count(server, "initialize")).toBe(2);
  });

  test("does not end under a call that takes longer than that", async () => {
    await using server = startMcpStandIn(async (request) => {
      if (request.message?.method !== "tools/call") return undefined;
      await Bun.sleep(60);
      return { content: [] };
    });
    await using pool = createMcpPool({ idle_ms: 20 });
    const { call } = await only(pool, serverAt(server.url));
    expect((await call({})).ok).toBe(true);
  });

  test("is opened anew when address, headers or account change, not when only the token does", async () => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool();
    const list = (more: Parameters<typeof serverAt>[1]) => pool.listTools(serverAt(server.url, more), NEVER);
    await list({ token: () => Promise.resolve("token-one") });
    await list({ token: () => Promise.resolve("token-two") });
    expect(count(server, "initialize")).toBe(1);
    await list({ headers: { "x-team": "red" } });
    await list({ headers: { "x-team": "red" }, identity: "ada" });
    expect(count(server, "initialize")).toBe(3);
  });

  test.each([
    [404, -32_001, "Session not found"],
    [400, -32_000, "Bad Request: No valid session ID provided"],
  ])("that the server forgot (%d) is opened anew, once for each call", async (status, code, words) => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    server.session_id = "session-2";
    server.handle = (request) =>
      request.headers["mcp-session-id"] === "session-1" ? rpcError(request, code, words, status) : undefined;
    expect((await call({})).ok).toBe(true);
    expect(count(server, "initialize")).toBe(2);
    server.handle = (request) =>
      request.message?.method === "tools/call" ? rpcError(request, code, words, status) : undefined;
    expect((await call({})).ok).toBe(false);
    expect(count(server, "initialize")).toBe(3);
  });

  test("outlives a restart of its server", async () => {
    const first = startMcpStandIn();
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(first.url));
    await first[Symbol.asyncDispose]();
    expect((await call({})).text).toBe(
      "Calendar could not be reached. Nothing answers at that address and port: see that the server runs, and that both are right.",
    );
    await using second = startMcpStandIn(undefined, Number(new URL(first.url).port));
    second.session_id = "session-2";
    expect((await call({})).ok).toBe(true);
  });

  test("gives way to newer ones when there are too many", async () => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool({ max_sessions: 2 });
    for (const id of ["a", "b", "a", "c"]) await pool.listTools({ ...serverAt(server.url), id }, NEVER);
    await server.seen(({ http }) => http === "DELETE");
    await pool.listTools({ ...serverAt(server.url), id: "a" }, NEVER);
    expect(count(server, "initialize")).toBe(3);
    await pool.listTools({ ...serverAt(server.url), id: "b" }, NEVER);
    expect(count(server, "initialize")).toBe(4);
  });
});

describe("an account", () => {
  const of = (account: string, server: McpStandIn, id: string) => ({ ...serverAt(server.url), account, id });

  test("that has many sessions loses its own oldest one, and nobody else loses any", async () => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool({ max_of_account: 2 });
    await pool.listTools(of("ada", server, "a"), NEVER);
    for (const id of ["b", "c", "b", "d"]) await pool.listTools(of("eve", server, id), NEVER);
    await server.seen(({ http }) => http === "DELETE");
    expect(count(server, "initialize")).toBe(4);
    for (const [account, id] of Object.entries({ ada: "a", eve: "b" }))
      await pool.listTools(of(account, server, id), NEVER);
    expect(count(server, "initialize")).toBe(4);
    await pool.listTools(of("eve", server, "c"), NEVER);
    expect(count(server, "initialize")).toBe(5);
  });

  test("that has the most gives way where there are too many in all, though others' are older", async () => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool({ max_sessions: 3 });
    await pool.listTools(of("ada", server, "a"), NEVER);
    for (const id of ["b", "c"]) await pool.listTools(of("eve", server, id), NEVER);
    await pool.listTools(of("bob", server, "d"), NEVER);
    await server.seen(({ http }) => http === "DELETE");
    for (const [account, id] of [
      ["ada", "a"],
      ["bob", "d"],
      ["eve", "c"],
    ] as const)
      await pool.listTools(of(account, server, id), NEVER);
    expect(count(server, "initialize")).toBe(4);
  });

  test("that has as many in use as it may is told so, and has them again when they are done", async () => {
    const held = Promise.withResolvers<undefined>();
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? held.promise : undefined,
    );
    await using pool = createMcpPool({ max_of_account: 1 });
    const { call } = await only(pool, of("eve", server, "a"));
    const called = call({});
    await server.seen(({ message }) => message?.method === "tools/call");
    expect(await pool.listTools(of("eve", server, "b"), NEVER)).toEqual({
      ok: false,
      message:
        "Calendar was not asked: 1 of your tool servers is at work, and an account may have no more at once. Try again when one has answered.",
    });
    expect(await pool.listTools(of("ada", server, "c"), NEVER)).toMatchObject({ ok: true });
    held.resolve(undefined);
    expect(await called).toMatchObject({ ok: true });
    expect(await pool.listTools(of("eve", server, "b"), NEVER)).toMatchObject({ ok: true });
  });

  test("whose sessions were too many only while they were used has no more than there is room for afterwards", async () => {
    const held = Promise.withResolvers<undefined>();
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? held.promise : undefined,
    );
    await using pool = createMcpPool({ max_sessions: 1 });
    const { call } = await only(pool, of("eve", server, "a"));
    const called = call({});
    await server.seen(({ message }) => message?.method === "tools/call");
    await pool.listTools(of("ada", server, "b"), NEVER);
    held.resolve(undefined);
    await called;
    await server.seen(({ http }) => http === "DELETE");
    expect(server.requests.filter(({ http }) => http === "DELETE")).toHaveLength(1);
  });
});

describe("a long answer", () => {
  const words = "x".repeat(MB);
  const long = { content: [{ type: "text", text: words }] };
  test.each([
    ["in one piece", (request: McpRequest) => rpc(request, long)],
    ["in a stream", ({ message }: McpRequest) => events({ jsonrpc: "2.0", id: message?.id, result: long })],
  ])("%s waits until it may be held, while a short one does not", async (_claim, answer) => {
    const open = createIncoming(2);
    await using server = startMcpStandIn((request) =>
      JSON.stringify(request.message?.params ?? {}).includes("long") ? answer(request) : undefined,
    );
    const other = open("ada");
    await other.holds(MB);
    const held: number[] = [];
    const incoming = (account: string) => {
      const one = open(account);
      return { ...one, holds: (bytes: number) => (held.push(bytes), one.holds(bytes)) };
    };
    await using pool = createMcpPool({ incoming });
    const { call } = await only(pool, serverAt(server.url));
    const waiting = call({ long: true });
    await until(() => held.some((bytes) => bytes > MB / 4));
    expect(await call({})).toMatchObject({ ok: true });
    expect(Math.max(...held)).toBeLessThan(MB / 2);
    await other.holds(0);
    expect((await waiting).ok).toBe(true);
    expect(Math.max(...held)).toBeGreaterThan(MB / 2);
    // It gave back what it had.
    await open("ada").holds(MB);
  });
});

describe("a list of tools", () => {
  test("tells what each tool may do, and believes no good word that a bad one contradicts", async () => {
    await using server = startMcpStandIn();
    server.tools = [
      tool("read", { description: "Reads.", annotations: { readOnlyHint: true } }),
      tool("wipe", { title: "Wipe", annotations: { readOnlyHint: true, destructiveHint: true } }),
      tool("odd", { annotations: { readOnlyHint: "true" } }),
    ];
    await using pool = createMcpPool();
    const { tools } = await listed(pool, serverAt(server.url));
    const shown = tools.map(({ name, description, read_only, destructive }) => ({
      name,
      description,
      read_only,
      destructive,
    }));
    expect(tools.every(({ target, foreign }) => target === "mcp:calendar" && foreign)).toBe(true);
    expect(shown).toEqual([
      { name: "read", description: "Reads.", read_only: true, destructive: false },
      { name: "wipe", description: "Wipe", read_only: false, destructive: true },
      { name: "odd", description: "", read_only: false, destructive: false },
    ]);
  });

  test("leaves out what is no tool, and cuts what is too long", async () => {
    await using server = startMcpStandIn();
    const huge = { type: "object", properties: { a: { description: "x".repeat(20_000) } } };
    let deep: object = { type: "object" };
    for (let depth = 0; depth < 50_000; depth += 1) deep = { a: deep };
    server.tools = [
      { inputSchema: { type: "object" } },
      { name: 7, inputSchema: { type: "object" } },
      { name: "no-schema" },
      { name: "list", inputSchema: [] },
      { name: "text", inputSchema: { type: "string" } },
      tool("x".repeat(201)),
      tool("ev\u202Eil"),
      tool(" "),
      tool("twice"),
      tool("twice", { description: "Another one." }),
      null,
      { name: "untyped", inputSchema: { properties: {} }, description: "y".repeat(5_000) },
      tool("huge", { inputSchema: huge }),
    ];
    await using pool = createMcpPool();
    const { tools, left_out } = await listed(pool, serverAt(server.url));
    expect(tools.map(({ name }) => name)).toEqual(["twice", "untyped", "huge"]);
    expect(left_out).toBe(10);
    expect(tools[1]?.parameters).toEqual({ type: "object", properties: {} });
    expect(tools[1]?.description).toHaveLength(1_000);
    expect(tools[2]?.parameters).toEqual({ type: "object" });
    expect(tools[2]?.description).toContain("not shown");
  });

  test("of a server without sessions is none the worse for one bad tool, or for what else is wrong with its page", async () => {
    await using server = startMcpStandIn(({ message }) => {
      const known = {
        resultType: "complete",
        supportedVersions: ["2026-07-28"],
        capabilities: { tools: {} },
      };
      if (message?.method === "server/discover") return known;
      const first = message?.params?.["cursor"] === undefined;
      const tools = [first ? tool("one") : tool("two"), { name: 7 }, tool("three", { description: 7 })];
      const page = { resultType: "complete", tools, ttlMs: "soon", nextCursor: first ? "2" : null };
      return message?.method === "tools/list" ? page : undefined;
    });
    await using pool = createMcpPool();
    const { tools, left_out } = await listed(pool, serverAt(server.url));
    expect([tools.map(({ name }) => name), left_out]).toEqual([["one", "three", "two"], 3]);
    expect(server.methods()).not.toContain("initialize");
  });

  test("is no longer than 200, of 4,000 tools and of pages without end", async () => {
    await using server = startMcpStandIn();
    server.tools = Array.from({ length: 4_000 }, (_, index) => tool(`tool-${index}`));
    await using pool = createMcpPool();
    const many = await listed(pool, { ...serverAt(server.url), id: "many" });
    expect([many.tools.length, many.left_out]).toEqual([200, 3_800]);
    let page = 0;
    server.handle = (request) => {
      if (request.message?.method !== "tools/list") return undefined;
      page += 1;
      return { tools: [tool(`tool-${page}`)], nextCursor: `page-${page}` };
    };
    const endless = await listed(pool, { ...serverAt(server.url), id: "endless" });
    expect([endless.tools.length, page]).toEqual([10, 10]);
    expect(server.requests.at(-1)?.message?.params).toMatchObject({ cursor: "page-9" });
  });

  test("is kept for five minutes, or until the server says that it changed", async () => {
    await using server = startMcpStandIn();
    let now = 0;
    await using pool = createMcpPool({ nowMs: () => now });
    await listed(pool, serverAt(server.url));
    await listed(pool, serverAt(server.url));
    expect(count(server, "tools/list")).toBe(1);
    now = 300_000;
    const { tools } = await listed(pool, serverAt(server.url));
    expect(count(server, "tools/list")).toBe(2);
    server.handle = ({ message }) =>
      message?.method === "tools/call"
        ? events(
            { jsonrpc: "2.0", method: "notifications/tools/list_changed" },
            { jsonrpc: "2.0", id: message.id, result: { content: [] } },
          )
        : undefined;
    await tools[0]?.call({}, NEVER);
    await listed(pool, serverAt(server.url));
    expect(count(server, "tools/list")).toBe(3);
  });

  test("of a server without tools is empty", async () => {
    const greeting = {
      protocolVersion: "2025-06-18",
      capabilities: {},
      serverInfo: { name: "n", version: "1" },
    };
    await using server = startMcpStandIn((request) =>
      request.message?.method === "initialize"
        ? rpc(request, greeting, { "mcp-session-id": server.session_id })
        : undefined,
    );
    await using pool = createMcpPool();
    expect(await pool.listTools(serverAt(server.url), NEVER)).toEqual({ ok: true, tools: [], left_out: 0 });
  });
});

describe("what a call brings", () => {
  const answers: [string, object, Partial<ToolOutcome>][] = [
    ["text in one piece", { content: [text("a"), text("b")] }, { text: "a\nb" }],
    ["data where there is no text", { content: [], structuredContent: { n: 1 } }, { text: '{"n":1}' }],
    [
      "text rather than the data beside it",
      { content: [text("a")], structuredContent: { n: 1 } },
      { text: "a" },
    ],
    [
      "a failure as one",
      { isError: true, content: [text("no such day")] },
      { ok: false, text: "no such day" },
    ],
    ["nothing", { content: [] }, { text: "(no output)" }],
    [
      "links by name, which nobody follows",
      { content: [{ type: "resource_link", name: "Doc", uri: "http://127.0.0.1:1/doc" }] },
      { text: "Doc - http://127.0.0.1:1/doc" },
    ],
    [
      "a resource that is text",
      { content: [{ type: "resource", resource: { uri: "a://b", text: "inside" } }] },
      { text: "inside" },
    ],
    [
      "pictures and sounds as files",
      {
        content: [
          { type: "image", data: btoa("one"), mimeType: "image/png" },
          { type: "image", data: btoa("two"), mimeType: "image/jpeg" },
          { type: "audio", data: btoa("la"), mimeType: "audio/mpeg" },
        ],
      },
      {
        text: "(File image-1.png, image/png, 3 bytes.)\n(File image-2.jpg, image/jpeg, 3 bytes.)\n(File audio-1.mp3, audio/mpeg, 2 bytes.)",
        files: [
          { filename: "image-1.png", content_type: "image/png", bytes: bytes("one") },
          { filename: "image-2.jpg", content_type: "image/jpeg", bytes: bytes("two") },
          { filename: "audio-1.mp3", content_type: "audio/mpeg", bytes: bytes("la") },
        ],
      },
    ],
    [
      "a resource of bytes under a name that leads nowhere",
      {
        content: [
          {
            type: "resource",
            resource: {
              uri: "file:///a/..%2f..%2fetc%2fpass%0awd?x",
              blob: btoa("b"),
              mimeType: "text/html\r\nx: y",
            },
          },
        ],
      },
      { files: [{ filename: "pass_wd", content_type: "application/octet-stream", bytes: bytes("b") }] },
    ],
  ];
  test.each(answers)("%s", async (_name, result, outcome) => {
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? result : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    expect(await call({})).toMatchObject({ ok: true, ...outcome });
  });

  test("is the first thousand parts of it, and how many more there are", async () => {
    const content = Array.from({ length: 5_000 }, (_, index) => text(`part ${index + 1}.`));
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? { content } : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    const outcome = await call({});
    expect(outcome.text).toStartWith(
      "(The answer has more than 1,000 parts: the other 4000 were left out.)\npart 1.\n",
    );
    expect(outcome.text).toEndWith("\npart 1000.");
  });

  test("is not looked through by the library, which would list every fault of every part", async () => {
    const content = [{ ...text("a"), annotations: 1, _meta: 2 }];
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? { content } : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    expect(await call({})).toMatchObject({ ok: true, text: "a" });
  });

  test("is cut at 200,000 characters and ten files, and says so", async () => {
    const image = { type: "image", data: btoa("x"), mimeType: "image/png" };
    const content = [...Array.from({ length: 12 }, () => image), text("y".repeat(250_000))];
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? { content } : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    const outcome = await call({});
    expect(outcome.files).toHaveLength(10);
    expect(outcome.text).toContain("image-11.png was left out");
    expect(outcome.text).toMatch(/goes on for \d+ more characters, which were cut off\.\)$/);
    expect(outcome.text.length).toBeLessThan(200_200);
  });
});

describe("secrets", () => {
  test("are sent, the token below the connection's own headers, and these below the protocol's", async () => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool();
    const headers = { "x-team": "red", accept: "text/html", "mcp-session-id": "stolen" };
    await listed(pool, serverAt(server.url, { headers, token: () => Promise.resolve("token-one") }));
    const { headers: sent } = server.requests.at(-1) ?? { headers: {} };
    expect(sent).toMatchObject({
      authorization: "Bearer token-one",
      "x-team": "red",
      accept: "application/json, text/event-stream",
      "mcp-session-id": "session-1",
    });
    const own = { authorization: "Basic 0123456789" };
    await listed(pool, serverAt(server.url, { headers: own, token: () => Promise.resolve("token-one") }));
    expect(server.requests.at(-1)?.headers["authorization"]).toBe("Basic 0123456789");
  });

  test("that a server repeats are shown in no result, error, description or list", async () => {
    const token = "tok-abcdefgh12345678";
    const header = "Bearer-like 9876543210fedcba";
    const echo = `${token} ${encodeURIComponent(token)} ${btoa(token)} ${header} 9876543210fedcba`;
    await using server = startMcpStandIn();
    server.tools = [tool("echo", { description: echo })];
    await using pool = createMcpPool();
    const own = serverAt(server.url, { headers: { "x-key": header }, token: () => Promise.resolve(token) });
    const { tools } = await listed(pool, own);
    server.handle = (request) => {
      const kind = request.message?.params?.["arguments"] as { kind?: string } | undefined;
      if (kind?.kind === "result") return { content: [text(echo)] };
      if (kind?.kind === "rpc") return rpcError(request, -32_000, echo);
      return kind?.kind === "http" ? new Response(echo, { status: 500 }) : undefined;
    };
    const outcomes = await Promise.all(
      ["result", "rpc", "http"].map((kind) => tools[0]?.call({ kind }, NEVER)),
    );
    const shown = JSON.stringify([tools[0]?.description, outcomes]);
    expect(shown).toContain("[key]");
    for (const secret of [token, btoa(token), header, "9876543210fedcba"])
      expect(shown).not.toContain(secret);
  });

  test("are neither in the names of files nor in files themselves", async () => {
    const token = "tok-abcdefgh12345678";
    const file = (name: string, words: string) => {
      return { type: "resource", resource: { uri: `file:///${name}`, blob: btoa(words) } };
    };
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call"
        ? { content: [file(`${token}.txt`, "hello"), file("keys.txt", `It is ${token}.`)] }
        : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url, { token: () => Promise.resolve(token) }));
    const outcome = await call({});
    expect(outcome.text).toContain("keys.txt was left out: it repeats a secret of the connection.");
    expect(outcome.files.map(({ filename }) => filename)).toEqual(["[key].txt"]);
    expect(outcome.text).not.toContain(token);
  });

  test("that ended are renewed once in the middle of a run", async () => {
    let good = "token-one";
    await using server = startMcpStandIn(({ headers }) =>
      headers["authorization"] === `Bearer ${good}` ? undefined : new Response(null, { status: 401 }),
    );
    await using pool = createMcpPool();
    const refused: (string | undefined)[] = [];
    let current = "token-one";
    const token = async (ended?: string) => {
      refused.push(ended);
      if (ended !== undefined) current = "token-two";
      return current;
    };
    const { call } = await only(pool, serverAt(server.url, { token }));
    good = "token-two";
    expect((await call({})).ok).toBe(true);
    expect(refused.filter((ended) => ended !== undefined)).toEqual(["token-one"]);
    good = "token-three";
    expect(await call({})).toMatchObject({
      ok: false,
      text: "Calendar does not accept the credential any more. Connect it again on its page under “Connections”, or enter a valid credential there.",
    });
  });

  test("that are missing are asked for in words", async () => {
    await using server = startMcpStandIn(() => new Response(null, { status: 401 }));
    await using pool = createMcpPool();
    const listing = await pool.listTools(serverAt(server.url), NEVER);
    expect(listing).toMatchObject({ ok: false, message: expect.stringContaining("asks for a credential") });
    expect(server.requests).toHaveLength(1);
  });

  test("that cannot be opened here are told of in their own words", async () => {
    await using server = startMcpStandIn();
    await using pool = createMcpPool();
    const token = () => Promise.reject(new AppError("unavailable", "Its token was sealed with another key."));
    expect(await pool.listTools(serverAt(server.url, { token }), NEVER)).toEqual({
      ok: false,
      message: "Calendar: Its token was sealed with another key.",
    });
    expect(server.requests).toEqual([]);
  });

  test("go nowhere else: a redirect to another host is not followed", async () => {
    await using elsewhere = startMcpStandIn();
    await using server = startMcpStandIn(() => Response.redirect(elsewhere.url, 307));
    await using pool = createMcpPool();
    const listing = await pool.listTools(serverAt(server.url, { token: async () => "token-one" }), NEVER);
    expect(listing).toMatchObject({
      ok: false,
      message: expect.stringContaining("redirects to another address"),
    });
    expect(elsewhere.requests).toEqual([]);
  });

  test("go to no address inside of the operator's network", async () => {
    await using pool = createMcpPool();
    const listing = await pool.listTools(serverAt("https://169.254.169.254/mcp"), NEVER);
    expect(listing).toMatchObject({
      ok: false,
      message: expect.stringContaining("not on the public internet"),
    });
  });
});

describe("a server that", () => {
  test("says nothing at all is given up in time", async () => {
    await using server = startMcpStandIn(() => new Promise(() => {}));
    await using pool = createMcpPool({ waits: QUICK });
    expect(await pool.listTools(serverAt(server.url), NEVER)).toEqual({
      ok: false,
      message:
        "Calendar did not answer in time. If this lasts, ask for less or see whether the server is well.",
    });
  });

  test("never lists, or never answers a call, is told that nobody waits, and hung up on", async () => {
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? new Promise(() => {}) : undefined,
    );
    await using pool = createMcpPool({ waits: QUICK_CALLS });
    const { call } = await only(pool, serverAt(server.url));
    expect((await call({})).text).toContain("did not answer in time");
    const asked = await server.seen(({ message }) => message?.method === "tools/call");
    const told = await server.seen(({ message }) => message?.method === "notifications/cancelled");
    expect(told.message?.params?.["requestId"]).toBe(asked.message?.id as number);
    await aborted(asked.signal);
    server.handle = ({ message }) => (message?.method === "tools/list" ? new Promise(() => {}) : undefined);
    await using hasty = createMcpPool({ waits: QUICK });
    expect(await hasty.inspect(serverAt(server.url), NEVER)).toMatchObject({ ok: false });
  });

  test("is asked when the run ends hears of it, and the call rejects with the reason", async () => {
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? new Promise(() => {}) : undefined,
    );
    await using pool = createMcpPool();
    const { tools } = await listed(pool, serverAt(server.url));
    const run = new AbortController();
    const calling = tools[0]?.call({}, run.signal);
    await server.seen(({ message }) => message?.method === "tools/call");
    run.abort(new Error("the run is over"));
    expect(calling).rejects.toThrow("the run is over");
    await server.seen(({ message }) => message?.method === "notifications/cancelled");
    expect(pool.listTools(serverAt(server.url), run.signal)).rejects.toThrow("the run is over");
  });

  test("makes progress gets more time, but not for ever", async () => {
    const beat = (token: unknown) => ({
      jsonrpc: "2.0",
      method: "notifications/progress",
      params: { progressToken: token, progress: 1 },
    });
    await using server = startMcpStandIn(({ message }) => {
      if (message?.method !== "tools/call") return undefined;
      const { _meta, arguments: args } = message.params as unknown as CallParams;
      const body = async function* () {
        for (let beats = 0; beats < args.beats; beats += 1) {
          yield `data: ${JSON.stringify(beat(_meta.progressToken))}\n\n`;
          await Bun.sleep(50);
        }
        yield `data: ${JSON.stringify({ jsonrpc: "2.0", id: message.id, result: { content: [] } })}\n\n`;
      };
      return new Response(body() as never, { headers: { "content-type": "text/event-stream" } });
    });
    {
      await using pool = createMcpPool({ waits: { call_ms: 1_000 } });
      const { call } = await only(pool, serverAt(server.url));
      expect((await call({ beats: 22 })).ok).toBe(true);
    }
    await using pool = createMcpPool({ waits: { longest_call_ms: 500 } });
    const { call } = await only(pool, serverAt(server.url));
    expect((await call({ beats: 1_000 })).text).toContain("did not answer in time");
  });

  const broken: [string, (id: unknown) => Response, string][] = [
    ["ends its stream without an answer", () => events(), "broke off before it answered"],
    [
      "breaks off in the middle of an event",
      () => streamOf('data: {"jsonrpc"'),
      "broke off before it answered",
    ],
    ["sends events that are no JSON", () => events("garbage", "{}"), "broke off before it answered"],
    ["answers with a web page", () => new Response("<html>", html()), "not MCP"],
    ["answers with broken JSON", () => new Response("{", json()), "not MCP"],
    ["answers with other JSON", () => Response.json({ hello: 1 }), "not MCP"],
    [
      "answers in a form of its own",
      (id) => Response.json(result(id, { content: [{ type: "smell" }] })),
      "form",
    ],
    [
      "answers with a fault of its own",
      () => new Response("down", { status: 503 }),
      "(503) has a fault of its own",
    ],
    ["refuses", () => new Response("no", { status: 403 }), "(403) does not allow this"],
    ["has had enough", () => new Response("no", { status: 429 }), "(429) is limiting requests"],
    ["answers 9 MB of JSON", (id) => Response.json(result(id, { x: "y".repeat(9 * MB) })), "more than 8 MB"],
    ["answers 9 MB in an event", (id) => events(result(id, { x: "y".repeat(9 * MB) })), "more than 8 MB"],
    ["sends an event without end", () => streamOf("data: ", "y".repeat(MB)), "more than 8 MB"],
    [
      "unpacks to more than it sent",
      () => packed(20 * MB),
      "answers in a way that is not read. The answer is packed",
    ],
    ["answers with parts of nothing", (id) => Response.json(result(id, parts(20_000))), "50,000 parts"],
    ["streams parts of nothing", (id) => events(result(id, parts(20_000))), "50,000 parts"],
    [
      "hides parts behind a quote that never ends",
      (id) => streamOf(`id: "\\\ndata: ${JSON.stringify(result(id, parts(20_000)))}\n\n`),
      "50,000 parts",
    ],
    ["answers with data of many members", (id) => Response.json(result(id, members(20_000))), "50,000 parts"],
    ["answers with nested data", (id) => Response.json(result(id, nested(300))), "200 levels"],
    [
      "says no with many parts",
      (id) => Response.json({ jsonrpc: "2.0", id, error: { code: 1, message: "no", data: parts(20_000) } }),
      "50,000 parts",
    ],
    [
      "says something else with many parts first",
      (id) => events({ jsonrpc: "2.0", method: "x", params: parts(20_000) }, result(id, { content: [] })),
      "50,000 parts",
    ],
  ];
  test.each(broken)("%s ends that call, and no other", async (_name, answer, words) => {
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" && message.params?.["name"] === "bad" ? answer(message.id) : undefined,
    );
    server.tools = [tool("bad"), tool("good")];
    await using pool = createMcpPool({ waits: { call_ms: 3_000 } });
    const { tools } = await listed(pool, serverAt(server.url));
    const outcome = await tools[0]?.call({}, NEVER);
    expect(outcome).toMatchObject({ ok: false, files: [] });
    expect(outcome?.text).toStartWith("Calendar ");
    expect(outcome?.text).toContain(words);
    expect((await tools[1]?.call({}, NEVER))?.ok).toBe(true);
    expect(count(server, "initialize")).toBe(1);
  });

  test("sends many parts in many events is heard out: each of them counts for itself", async () => {
    const note = { jsonrpc: "2.0", method: "x", params: parts(8_000) };
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call"
        ? events(note, note, note, result(message.id, { content: [text("heard")] }))
        : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    expect(await call({})).toMatchObject({ ok: true, text: "heard" });
  });

  test.each(["initialize", "tools/list"])("answers %s with many parts is not read", async (method) => {
    const extra = { experimental: members(20_000) };
    await using server = startMcpStandIn((request) =>
      request.message?.method === method ? rpc(request, { ...extra, tools: [] }) : undefined,
    );
    await using pool = createMcpPool();
    expect(await pool.listTools(serverAt(server.url), NEVER)).toMatchObject({
      ok: false,
      message: expect.stringContaining("50,000 parts"),
    });
  });

  test("floods with small events is hung up on, and others have their turns meanwhile", async () => {
    const note = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } };
    const piece = `data: ${JSON.stringify(note)}\n\n`.repeat(1_000);
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? streamOf(piece, piece) : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    let turns = 0;
    const clock = setInterval(() => (turns += 1), 1);
    expect((await call({})).text).toContain("10,000 events");
    clearInterval(clock);
    expect(turns).toBeGreaterThan(10);
  });

  test("asks for a model, folders or a form gets a refusal, not silence", async () => {
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call"
        ? events(
            {
              jsonrpc: "2.0",
              id: 71,
              method: "sampling/createMessage",
              params: { messages: [], maxTokens: 1 },
            },
            { jsonrpc: "2.0", id: 72, method: "roots/list" },
            { jsonrpc: "2.0", id: 73, method: "elicitation/create", params: { message: "Your password?" } },
            result(message.id, { content: [] }),
          )
        : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    expect((await call({})).ok).toBe(true);
    const answers = await Promise.all(
      [71, 72, 73].map((id) => server.seen(({ message }) => message?.id === id && !message.method)),
    );
    expect(answers.map(({ message }) => message)).toEqual(
      [71, 72, 73].map((id) =>
        expect.objectContaining({ id, error: { code: -32_601, message: "Method not found" } }),
      ),
    );
    const hello = await server.seen(({ message }) => message?.method === "initialize");
    expect(hello.message?.params?.["capabilities"]).toEqual({});
  });

  test("breaks off a call is not asked the same again: it may have done it", async () => {
    await using server = startMcpStandIn(({ message }) =>
      message?.method === "tools/call" ? events() : undefined,
    );
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    expect((await call({})).text).toContain("may have done what it was asked");
    expect(count(server, "tools/call")).toBe(1);
  });

  test("wants its stream taken up again at once is not hurried by it", async () => {
    await using server = startMcpStandIn(({ http, message }) => {
      const primed = "id: 1\nretry: 0\ndata: \n\n";
      if (http === "GET" || message?.method === "tools/call") return streamOf(primed);
      return undefined;
    });
    await using pool = createMcpPool({ waits: QUICK_CALLS });
    const { call } = await only(pool, serverAt(server.url));
    expect((await call({})).text).toContain("did not answer in time");
    expect(server.requests.filter(({ http }) => http === "GET").length).toBeLessThan(6);
  });
});

describe("a server of the old transport", () => {
  test("is known by its refusal of the first request", async () => {
    await using server = startOldStandIn();
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url, { token: async () => "token-one" }));
    expect(await call({ a: 1 })).toEqual({ ok: true, text: "done", files: [] });
    expect(server.tokens).toEqual(new Set(["Bearer token-one"]));
  });

  test("whose stream breaks off ends its calls at once, and is greeted again for the next", async () => {
    await using server = startOldStandIn();
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    server.onCall = (stream) => stream.close();
    expect((await call({})).text).toContain("broke off before it answered");
    server.onCall = undefined;
    expect((await call({})).ok).toBe(true);
    expect(server.streams).toBe(2);
  });

  test("is believed only about its own address", async () => {
    await using elsewhere = startMcpStandIn();
    await using server = startOldStandIn(elsewhere.url);
    await using pool = createMcpPool({ waits: QUICK });
    expect(await pool.listTools(serverAt(server.url), NEVER)).toMatchObject({ ok: false });
    expect(elsewhere.requests).toEqual([]);
  });

  test("is heard no longer than it takes to see that it floods, and greeted again for the next call", async () => {
    await using server = startOldStandIn();
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    server.onCall = (stream) => stream.enqueue(bytes("data: {}\n\n".repeat(20_000)));
    expect((await call({})).text).toContain("10,000 events");
    server.onCall = undefined;
    expect((await call({})).ok).toBe(true);
    expect(server.streams).toBe(2);
  });

  test("is heard no longer than 8 MB at once", async () => {
    await using server = startOldStandIn();
    await using pool = createMcpPool();
    const { call } = await only(pool, serverAt(server.url));
    server.onCall = (stream) => stream.enqueue(bytes(`data: ${"y".repeat(9 * MB)}`));
    expect((await call({})).text).toContain("more than 8 MB");
  });
});

interface CallParams {
  _meta: { progressToken: unknown };
  arguments: { beats: number };
}

interface Listed {
  tools: Tool[];
  left_out: number;
}

async function listed(pool: McpPool, server: McpServer): Promise<Listed> {
  const listing = await pool.listTools(server, NEVER);
  if (!listing.ok) throw new Error(listing.message);
  return listing;
}

/** The one tool of a server. */
async function only(pool: McpPool, server: McpServer) {
  const { tools } = await listed(pool, server);
  const [first] = tools;
  if (first === undefined) throw new Error("the server lists no tool");
  return { call: (args: Record<string, unknown>) => first.call(args, NEVER) };
}

function count(server: McpStandIn, method: string): number {
  return server.methods().filter((one) => one === method).length;
}

function text(words: string) {
  return { type: "text", text: words };
}

function bytes(words: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(words);
}

function parts(count: number) {
  return { content: Array.from({ length: count }, () => ({})) };
}

function members(count: number) {
  const data = Array.from({ length: count }, (_, index) => [`k${index}`, {}]);
  return { content: [], structuredContent: Object.fromEntries(data) as object };
}

function nested(depth: number) {
  return {
    content: [],
    structuredContent: { deep: JSON.parse("[".repeat(depth) + "]".repeat(depth)) as unknown },
  };
}

function result(id: unknown, value: object) {
  return { jsonrpc: "2.0", id, result: value };
}

function html() {
  return { headers: { "content-type": "text/html" } };
}

function json() {
  return { headers: { "content-type": "application/json" } };
}

/** An event stream of the first piece and, for ever, the second; without a second one it breaks off. */
function streamOf(first: string, then?: string): Response {
  let sent = false;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const piece = sent ? then : first;
      sent = true;
      if (piece === undefined) controller.close();
      else controller.enqueue(bytes(piece));
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

function packed(size: number): Response {
  const body = Bun.gzipSync(bytes(`"${"y".repeat(size)}"`));
  return new Response(body, { headers: { "content-type": "application/json", "content-encoding": "gzip" } });
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}
