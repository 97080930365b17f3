import { expect, test } from "bun:test";
import { MODEL_KINDS } from "../../src/ai/providers.ts";
import type { ConnectionKind } from "../../src/resources/connections/kinds.ts";
import { testConnection } from "../../src/resources/connections/test-connection.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { startOldStandIn } from "../support/old-mcp-server.ts";
import { startModelServer } from "../support/model-server.ts";
import { type ProviderFault, type ProviderServer, startProvider } from "../support/provider-server.ts";
import { startClock } from "../support/own-time.ts";

const KEY = "sk-very-secret-credential-abcd";
const SHORT_MS = 150;
const LONG_MS = 15_000;
const LOCAL = { egress: { allow: ["127.0.0.1"] } };

type Pinged = Exclude<ConnectionKind, "demo">;

const MODELS = ["model-1", "model-2", "model-3"];
const FOUND: Record<Pinged, { path: string; detail: string; models?: string[]; account?: string }> = {
  openai: { path: "/v1/models", detail: "3 models visible", models: MODELS },
  mistral: { path: "/v1/models", detail: "3 models visible", models: MODELS },
  groq: { path: "/openai/v1/models", detail: "3 models visible", models: MODELS },
  openrouter: { path: "/api/v1/models", detail: "3 models visible", models: MODELS },
  openai_compatible: { path: "/v1/models", detail: "3 models visible", models: MODELS },
  anthropic: { path: "/v1/models", detail: "3 models visible", models: MODELS },
  google: { path: "/v1beta/models", detail: "3 models visible", models: MODELS },
  ollama: { path: "/api/tags", detail: "3 models visible", models: MODELS },
  notes: { path: "/v1/users/me", detail: "Signed in as Ada's notes", account: "Ada's notes" },
  "codehost-a": { path: "/user", detail: "Signed in as octocat", account: "octocat" },
  "codehost-b": { path: "/api/v4/user", detail: "Signed in as ada.lovelace", account: "ada.lovelace" },
  sheets: { path: "/oauth2/v3/userinfo", detail: "Signed in as ada@example.com", account: "ada@example.com" },
  mcp: { path: "/mcp", detail: "2 tools" },
};
const KINDS = Object.keys(FOUND) as Pinged[];

test.each(KINDS)("a good connection to %s is told so, by a request that spends nothing", async (kind) => {
  await using provider = startProvider(kind, { credential: KEY });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind });
  t.clock.advance("5m");
  const { status, body } = await ada.post(`/connections/${id}/test`);
  expect(status).toBe(200);
  const { path, ...found } = FOUND[kind];
  expect(body).toEqual({
    ok: true,
    kind,
    status: "ok",
    latency_ms: 0,
    checked_at: t.app.now(),
    models: [],
    account: null,
    server_info: kind === "mcp" ? { name: "files", version: "1.2.3" } : null,
    tools: kind === "mcp" ? ["read_file", "write_file"] : [],
    error: null,
    ...found,
  });
  expect(provider.requests[0]?.path).toBe(path);
  expect((await ada.get("/connections")).body[0]).toMatchObject({
    status: "ok",
    last_tested_at: t.app.now(),
    last_error: null,
    updated: t.app.now() - 300,
  });
});

test.each(KINDS)("a wrong credential of %s is told so in the body, and is never repeated", async (kind) => {
  await using provider = startProvider(kind, { credential: "another-credential" });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind });
  const answer = await ada.post(`/connections/${id}/test`);
  const needs_auth = kind === "mcp";
  expect([answer.status, answer.body]).toMatchObject([
    200,
    {
      ok: false,
      status: needs_auth ? "needs_auth" : "error",
      models: [],
      account: null,
      error: {
        code: needs_auth ? "needs_auth" : "invalid_credentials",
        http_status: kind === "google" ? 400 : 401,
      },
    },
  ]);
  expect(answer.body.detail).toBe(answer.body.error.message);
  expect(JSON.stringify(answer.body)).not.toMatch(/sk-very|abcd/);
  expect((await ada.get("/connections")).body[0]).toMatchObject({
    status: answer.body.status,
    last_error: answer.body.error.message,
    last_tested_at: t.app.now(),
  });
});

test("the demo model needs no network", async () => {
  await using t = await testApp();
  t.app.fetch = () => Promise.reject(new Error("the demo model must not use the network"));
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "demo" });
  expect((await ada.post(`/connections/${body.id}/test`)).body).toMatchObject({ ok: true, models: ["demo"] });
});

const FAULTS: [ProviderFault, string, number | null][] = [
  ["drop", "unreachable", null],
  ["html", "bad_response", 200],
  ["garbage", "bad_response", 200],
  ["other_json", "bad_response", 200],
  ["huge", "bad_response", 200],
  ["redirect", "bad_response", 307],
  ["forbidden", "forbidden", 403],
  ["limited", "rate_limited", 429],
  ["not_found", "bad_response", 404],
  ["broken", "bad_response", 503],
];

test.each(FAULTS)(
  "a provider with the fault %s is told as %s, whatever its kind",
  async (fault, code, http_status) => {
    await using t = await testApp(LOCAL);
    const ada = await t.as("ada@example.com");
    for (const kind of KINDS) {
      await using provider = startProvider(kind, { fault });
      const id = await connect(ada, provider, { kind });
      const { status, body } = await ada.post(`/connections/${id}/test`);
      expect([kind, status, body.status, body.error]).toEqual([
        kind,
        200,
        "error",
        { code, message: expect.stringContaining("127.0.0.1"), http_status },
      ]);
      await ada.delete(`/connections/${id}`);
    }
  },
);

test.each(KINDS)("%s may hang: the test ends in time", async (kind) => {
  await using provider = startProvider(kind, { fault: "hang" });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind });
  const verdict = await testConnection(t.app, await userOf(t), id, SHORT_MS);
  expect(verdict).toMatchObject({
    ok: false,
    status: "error",
    error: { code: "timeout", http_status: null },
  });
  expect((await ada.get("/connections")).body[0].status).toBe("error");
});

test("a body that never ends is not waited for either", async () => {
  await using provider = startProvider("openai", {
    answer: () => new Response(new ReadableStream({ start: (stream) => stream.enqueue(Buffer.from("{")) })),
  });
  await using t = await testApp(LOCAL);
  const id = await connect(await t.as("ada@example.com"), provider, { kind: "openai" });
  const verdict = await testConnection(t.app, await userOf(t), id, SHORT_MS);
  expect(verdict.error?.code).toBe("timeout");
});

test("a stream of events that never answers, or never ends, is bounded in time and size", async () => {
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const event = `data: ${JSON.stringify({ jsonrpc: "2.0", method: "noise", params: "x".repeat(50_000) })}\n\n`;
  const streams: [string, (stream: ReadableStreamDefaultController) => void][] = [
    ["timeout", (stream) => stream.enqueue(Buffer.from(": hello\n\n"))],
    ["bad_response", (stream) => Array.from({ length: 40 }, () => stream.enqueue(Buffer.from(event)))],
    ["bad_response", (stream) => stream.close()],
    ["bad_response", (stream) => stream.enqueue(Buffer.from("data: {nonsense\n\n"))],
  ];
  for (const [code, start] of streams) {
    const headers = { "content-type": "text/event-stream" };
    await using provider = startProvider("mcp", {
      answer: () => new Response(new ReadableStream({ start }), { headers }),
    });
    const id = await connect(ada, provider, { kind: "mcp" });
    // What is bounded in size must be so however slow this machine is.
    const limit_ms = code === "timeout" ? SHORT_MS : LONG_MS;
    const verdict = await testConnection(t.app, await userOf(t), id, limit_ms);
    expect(verdict.error?.code).toBe(code as "timeout");
  }
});

test("a redirect is not followed, and the credential goes nowhere else", async () => {
  await using elsewhere = startProvider("openai", {});
  const location = `${elsewhere.base_url}/models?key=${KEY}`;
  await using provider = startProvider("openai", { fault: "redirect", location });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai" });
  const { body } = await ada.post(`/connections/${id}/test`);
  expect(body.error.message).toContain(`redirects to ${elsewhere.base_url}/models?key=[key]`);
  expect(elsewhere.requests).toEqual([]);
});

test.each([
  ["as it is", KEY],
  ["in capitals", KEY.toUpperCase()],
  ["in part", KEY.slice(0, 14)],
  ["masked", `${KEY.slice(0, 6)}****${KEY.slice(-4)}`],
  ["a header's value", "team/secret+value"],
  ["a header's value, encoded", encodeURIComponent("team/secret+value")],
])("a provider that repeats a secret in its error is not quoted with it: %s", async (_how, echoed) => {
  await using provider = startProvider("openai_compatible", {
    answer: () => Response.json({ error: { message: `Bad key ${echoed} given` } }, { status: 400 }),
  });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const headers = { "X-Team": "team/secret+value" };
  const id = await connect(ada, provider, { kind: "openai_compatible", headers });
  const { body } = await ada.post(`/connections/${id}/test`);
  expect(body.error.message).toEndWith("It said: Bad key [key] given");
  expect((await ada.get("/connections")).body[0].last_error).toEndWith("It said: Bad key [key] given");
});

test.each([
  ["the credential", KEY],
  ["the credential in capitals", KEY.toUpperCase()],
  ["a part of the credential", KEY.slice(3, 20)],
  ["the credential where a name is cut", `${"x".repeat(190)}${KEY}`],
  ["a header's value", "team/secret+value"],
  ["a header's value, encoded", encodeURIComponent("team/secret+value")],
])("a provider that repeats %s in a good answer is not shown", async (_what, echoed) => {
  await using provider = startProvider("notes", { answer: () => Response.json({ name: echoed }) });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "notes", headers: { "X-Team": "team/secret+value" } });
  const { body } = await ada.post(`/connections/${id}/test`);
  expect(body).toMatchObject({ ok: false, account: null, error: { code: "bad_response" } });
  expect(JSON.stringify(body)).not.toContain(echoed);
  expect((await ada.get("/connections")).body[0].last_error).not.toContain(echoed);
});

test("a short header's value may stand in a good answer", async () => {
  await using provider = startProvider("notes", { answer: () => Response.json({ name: "Mailwright bot" }) });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "notes", headers: { "X-Title": "Mailwright" } });
  expect((await ada.post(`/connections/${id}/test`)).body.account).toBe("Mailwright bot");
});

test("an answer that is nested without end is a verdict too, and takes no time", async () => {
  const nested = `${"[".repeat(200_000)}${"]".repeat(200_000)}`;
  const rpc = `{"jsonrpc":"2.0","id":1,"error":${nested}}`;
  using clock = startClock();
  for (const [kind, status, text] of [
    ["openai", 200, `{"data":${nested}}`],
    ["openai", 400, `{"error":${nested}}`],
    ["mcp", 200, rpc],
    ["mcp", 200, `data: ${rpc}\n\n`],
  ] as const) {
    const type = text.startsWith("data:") ? "text/event-stream" : "application/json";
    const answer = (): Response => new Response(text, { status, headers: { "content-type": type } });
    await using provider = startProvider(kind, { answer });
    await using t = await testApp(LOCAL);
    const ada = await t.as("ada@example.com");
    const id = await connect(ada, provider, { kind });
    const { status: told, body } = await ada.post(`/connections/${id}/test`);
    expect([told, body.error]).toMatchObject([200, { code: "bad_response", http_status: status }]);
  }
  expect(clock.ms()).toBeLessThan(3_000);
});

test("a long list of models is cut after 200 and counted whole", async () => {
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  for (const kind of ["openai", "google", "anthropic", "ollama"] as const) {
    await using provider = startProvider(kind, { models: 450 });
    const id = await connect(ada, provider, { kind });
    const { body } = await ada.post(`/connections/${id}/test`);
    expect([kind, body.models.length, body.detail]).toEqual([kind, 200, "450 models visible"]);
  }
});

test("whole lists are asked for where the provider would send pages", async () => {
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const queries = { anthropic: { limit: "1000" }, google: { pageSize: "1000" }, openai: {} };
  for (const [kind, query] of Object.entries(queries)) {
    await using provider = startProvider(kind as Pinged);
    await ada.post(`/connections/${await connect(ada, provider, { kind })}/test`);
    expect(provider.requests[0]?.query).toEqual(query);
  }
});

test("OpenRouter shows its models to everybody, so the key is asked about by itself", async () => {
  await using provider = startProvider("openrouter", { credential: KEY });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  await ada.post(`/connections/${await connect(ada, provider, { kind: "openrouter" })}/test`);
  expect(provider.requests.map(({ path }) => path)).toEqual(["/api/v1/models", "/api/v1/key"]);
});

test.each([
  [
    "a wrong key",
    { credential: "sk-a-mistyped-one" },
    "invalid_credentials",
    "did not accept the key. Enter another",
  ],
  ["no key", {}, "no_credential", "asks for a key, and this connection has none. Enter one."],
])("a server that lists its models for everybody tells of %s as well", async (_what, given, code, words) => {
  await using model = startModelServer({ api_key: KEY, open_list: true });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const draft = { kind: "openai_compatible", base_url: model.base_url, model: "stand-in" };
  const wrong = await ada.post("/connections/test", { ...draft, ...given });
  expect([wrong.body.ok, wrong.body.error?.code]).toEqual([false, code]);
  expect(wrong.body.error.message).toContain(words);
  expect((await ada.post("/connections/test", { ...draft, credential: KEY })).body).toMatchObject({
    ok: true,
    models: ["stand-in"],
  });
  // No call that was made for it has a message that could be answered, and so charged.
  const calls = model.requests.filter(({ path }) => path === "/v1/chat/completions");
  expect(calls.map(({ body }) => body?.messages)).toEqual([[], []]);
});

test.each([
  [400, { code: "Client specified an invalid argument", error: "Incorrect API key provided: xa***cd." }],
  [400, { error: { code: 400, message: "API key expired. Please renew the API key." } }],
  [
    403,
    { error: { code: 403, message: "Your API key was reported as leaked. Please use another API key." } },
  ],
  [403, { status: 403, title: "Forbidden", detail: "Authorization failed" }],
  [400, { error: { message: "Authentication Error, No api key passed in.", type: "auth_error" } }],
])("a key is known to be wrong also by the words of a %i: %j", async (status, said) => {
  await using provider = startProvider("openai", { answer: () => Response.json(said, { status }) });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai" });
  expect((await ada.post(`/connections/${id}/test`)).body.error.code).toBe("invalid_credentials");
  const { body: inbox } = await ada.post("/inboxes", { default_connection_id: id });
  const { body: call } = await ada.post("/v1/messages", { instruction: "Hello", inbox_id: inbox.id });
  expect(call.error).toContain("did not accept the API key. Enter a valid one in this connection.");
});

test("a permission that a good key lacks is not taken for a wrong key", async () => {
  for (const message of [
    "This key may not list models.",
    "Generative Language API has not been used in this project before, or it is disabled.",
    "Your API key is not valid for this model.",
  ]) {
    await using provider = startProvider("openai", {
      answer: () => Response.json({ error: { message } }, { status: 403 }),
    });
    await using t = await testApp(LOCAL);
    const ada = await t.as("ada@example.com");
    const id = await connect(ada, provider, { kind: "openai" });
    expect((await ada.post(`/connections/${id}/test`)).body.error.code).toBe("forbidden");
  }
});

test("the connection's own headers go along, but not over the protocol's", async () => {
  await using provider = startProvider("mcp", {});
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const headers = {
    "X-Team": "mail",
    "Mcp-Session-Id": "mine",
    "MCP-Protocol-Version": "1",
    Authorization: "Basic eDp5",
  };
  const id = await connect(ada, provider, { kind: "mcp", headers });
  expect((await ada.post(`/connections/${id}/test`)).body.ok).toBe(true);
  for (const request of provider.requests)
    expect(request.headers).toMatchObject({ "x-team": "mail", authorization: "Basic eDp5" });
});

test("a base_url may name the host alone, or one interface more than needed", async () => {
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const ends: [Pinged, string[]][] = [
    ["openai", ["", "/", "/v1", "/v1/"]],
    ["anthropic", ["", "/v1", "/v1/"]],
    ["google", ["", "/v1beta", "/v1beta/openai", "/v1beta/openai/"]],
    ["ollama", ["", "/v1", "/v1/"]],
    ["notes", ["", "/", "/v1"]],
    ["codehost-b", ["", "/api/v4", "/api/v4/"]],
  ];
  for (const [kind, paths] of ends)
    for (const path of paths) {
      await using provider = startProvider(kind, { credential: KEY });
      const id = await connect(ada, { base_url: provider.origin + path }, { kind });
      const { body } = await ada.post(`/connections/${id}/test`);
      expect([kind, path, body.ok]).toEqual([kind, path, true]);
      await ada.delete(`/connections/${id}`);
    }
});

test("an integration is where the operator's configuration says", async () => {
  for (const kind of ["notes", "codehost-a", "codehost-b", "sheets"] as const) {
    await using provider = startProvider(kind, { credential: KEY });
    await using t = await testApp({ ...LOCAL, integrations: { [kind]: { api_base: provider.origin } } });
    const ada = await t.as("ada@example.com");
    const { body } = await ada.post("/connections", { kind, credential: KEY });
    expect((await ada.post(`/connections/${body.id}/test`)).body.account).toBe(FOUND[kind].account ?? "");
  }
});

test.each(["json", "sse"] as const)(
  "an MCP server that speaks %s is greeted and taken leave of",
  async (mcp) => {
    await using provider = startProvider("mcp", { credential: KEY, mcp });
    await using t = await testApp(LOCAL);
    const ada = await t.as("ada@example.com");
    const id = await connect(ada, provider, { kind: "mcp" });
    const { body } = await ada.post(`/connections/${id}/test`);
    expect(body).toMatchObject({ ok: true, tools: ["read_file", "write_file"] });
    const said = provider.requests.map(({ method, body }) => body?.method ?? method);
    expect(said).toEqual(["initialize", "notifications/initialized", "tools/list", "tools/list", "DELETE"]);
    const [first, ...rest] = provider.requests;
    expect(first?.headers["mcp-session-id"]).toBeUndefined();
    expect(first?.headers["accept"]).toBe("application/json, text/event-stream");
    expect(first?.body?.params).toMatchObject({ protocolVersion: "2025-11-25", capabilities: {} });
    for (const { headers } of rest)
      expect(headers).toMatchObject({
        "mcp-session-id": "session-1868a90c",
        "mcp-protocol-version": "2025-06-18",
        authorization: `Bearer ${KEY}`,
      });
  },
);

test("an MCP server without a handshake is understood as well", async () => {
  await using provider = startProvider("mcp", { mcp: "stateless" });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "mcp" });
  const { body } = await ada.post(`/connections/${id}/test`);
  expect(body).toMatchObject({ ok: true, tools: ["look_up"], server_info: { name: "new", version: "2" } });
});

test("an MCP server of the transport before Streamable HTTP is spoken to in its own way", async () => {
  await using server = startOldStandIn();
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const input = { kind: "mcp", base_url: server.url, credential: KEY };
  const { body } = await ada.post("/connections", input);
  expect((await ada.post(`/connections/${body.id}/test`)).body).toMatchObject({
    ok: true,
    status: "ok",
    detail: "1 tool",
    server_info: { name: "old", version: "1" },
    tools: ["do"],
    error: null,
  });
  expect(server.tokens).toEqual(new Set([`Bearer ${KEY}`]));
});

test("an MCP server without tools is not asked for any, and its error is quoted", async () => {
  const answers: [object, object][] = [
    [
      { result: { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "x" } } },
      { ok: true, tools: [] },
    ],
    [
      { error: { code: -32_602, message: `No entry for ${KEY}` } },
      { ok: false, error: { code: "bad_response", message: expect.stringContaining("No entry for [key]") } },
    ],
    [{ result: { hello: "world" } }, { ok: false, error: { code: "bad_response" } }],
  ];
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  for (const [answer, verdict] of answers) {
    await using provider = startProvider("mcp", {
      answer: ({ body }) => Response.json({ jsonrpc: "2.0", id: body?.id ?? null, ...answer }),
    });
    const id = await connect(ada, provider, { kind: "mcp" });
    expect((await ada.post(`/connections/${id}/test`)).body).toMatchObject(verdict);
    expect(provider.requests.map(({ body }) => body?.method)).not.toContain("tools/list");
  }
});

test("a 401 of a server for which there is no credential asks for one", async () => {
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  for (const kind of ["openai_compatible", "ollama"] as const) {
    await using provider = startProvider(kind, { credential: KEY });
    const { body } = await ada.post("/connections", { kind, base_url: provider.base_url });
    const verdict = (await ada.post(`/connections/${body.id}/test`)).body;
    expect(verdict).toMatchObject({ status: "error", error: { code: "no_credential", http_status: 401 } });
    expect(provider.requests[0]?.headers["authorization"]).toBeUndefined();
  }
  await using mcp = startProvider("mcp", { answer: () => new Response("no", { status: 401 }) });
  const { body } = await ada.post("/connections", { kind: "mcp", base_url: mcp.base_url });
  expect((await ada.post(`/connections/${body.id}/test`)).body.error.code).toBe("no_credential");
});

test("a connection by OAuth without a token, or with a dead one, has to be connected again", async () => {
  await using provider = startProvider("notes", { credential: "another" });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "notes" });
  await t.app.db.updateTable("connections").set({ auth: "oauth" }).execute();
  const dead = (await ada.post(`/connections/${id}/test`)).body;
  expect(dead).toMatchObject({ status: "needs_auth", error: { code: "needs_auth", http_status: 401 } });
  await t.app.db.updateTable("connections").set({ sealed: null }).execute();
  const none = (await ada.post(`/connections/${id}/test`)).body;
  expect(none).toMatchObject({ status: "needs_auth", error: { code: "needs_auth", http_status: null } });
  expect(provider.requests).toHaveLength(1);
  expect((await ada.get("/connections")).body[0].status).toBe("needs_auth");
});

test("a credential that is gone, or cannot be opened any more, is told without asking anybody", async () => {
  await using provider = startProvider("openai");
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai" });
  for (const sealed of [null, Buffer.alloc(60, 1)]) {
    await t.app.db.updateTable("connections").set({ sealed }).execute();
    const { status, body } = await ada.post(`/connections/${id}/test`);
    expect([status, body.error]).toMatchObject([200, { code: "no_credential", http_status: null }]);
  }
  expect(provider.requests).toEqual([]);
});

test("GitHub's own way to limit is understood", async () => {
  await using provider = startProvider("codehost-a", {
    answer: () =>
      Response.json(
        { message: "API rate limit exceeded" },
        { status: 403, headers: { "x-ratelimit-remaining": "0" } },
      ),
  });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "codehost-a" });
  expect((await ada.post(`/connections/${id}/test`)).body.error.code).toBe("rate_limited");
});

test("an address that the operator did not allow is not asked", async () => {
  await using provider = startProvider("openai");
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", {
    kind: "openai",
    credential: KEY,
    base_url: provider.base_url.replace("http:", "https:"),
  });
  const verdict = (await ada.post(`/connections/${body.id}/test`)).body;
  expect(verdict).toMatchObject({ ok: false, error: { code: "blocked_address", http_status: null } });
  const ollama = (await ada.post("/connections", { kind: "ollama" })).body.id;
  expect((await ada.post(`/connections/${ollama}/test`)).body.error).toMatchObject({
    code: "blocked_address",
    message: expect.stringMatching(/^Ollama at localhost:11434 could not be reached\..*egress\.allow/),
  });
  expect(provider.requests).toEqual([]);
});

test("nobody there, an unknown name and a foreign certificate are told apart", async () => {
  await using dns = await startDnsServer({});
  await using t = await testApp({ ...LOCAL, dns: { servers: [dns.address] } });
  const ada = await t.as("ada@example.com");
  await using plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const free_port = plain.port;
  await plain.stop(true);
  await using tls = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: await t.app.certificates.current(),
    fetch: () => Response.json({ data: [] }),
  });
  for (const [base_url, code] of [
    [`http://127.0.0.1:${free_port}/v1`, "unreachable"],
    ["https://nowhere.example/v1", "unreachable"],
    [`https://127.0.0.1:${tls.port}/v1`, "tls_error"],
  ]) {
    const { body } = await ada.post("/connections", { kind: "openai_compatible", base_url });
    const verdict = (await ada.post(`/connections/${body.id}/test`)).body;
    expect([base_url, verdict.error.code, verdict.error.http_status]).toEqual([base_url, code, null]);
  }
});

test("the outcome of a test says nothing about a credential that came after it", async () => {
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  const { promise: mayAnswer, resolve: goOn } = Promise.withResolvers<void>();
  await using provider = startProvider("openai", {
    answer: async () => {
      onAsked();
      await mayAnswer;
      return Response.json({ error: { message: "no" } }, { status: 401 });
    },
  });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai" });
  const testing = ada.post(`/connections/${id}/test`);
  await asked;
  await ada.patch(`/connections/${id}`, { credential: "a-new-credential" });
  goOn();
  expect((await testing).body.error.code).toBe("invalid_credentials");
  expect((await ada.get("/connections")).body[0]).toMatchObject({ status: "untested", last_tested_at: null });
});

test("a connection that is deleted during its test stays deleted", async () => {
  const { promise: mayAnswer, resolve: goOn } = Promise.withResolvers<void>();
  const { promise: asked, resolve: onAsked } = Promise.withResolvers<void>();
  await using provider = startProvider("openai", {
    answer: async () => {
      onAsked();
      await mayAnswer;
      return Response.json({ data: [] });
    },
  });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai" });
  const testing = ada.post(`/connections/${id}/test`);
  await asked;
  await ada.delete(`/connections/${id}`);
  goOn();
  expect((await testing).body).toMatchObject({ ok: true, detail: "0 models visible" });
  expect((await ada.get("/connections")).body).toEqual([]);
});

test("a good test clears the error of a bad one", async () => {
  await using provider = startProvider("openai", { fault: "broken" });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai" });
  await ada.post(`/connections/${id}/test`);
  provider.fault = "none";
  await ada.post(`/connections/${id}/test`);
  expect((await ada.get("/connections")).body[0]).toMatchObject({ status: "ok", last_error: null });
});

test("a foreign, an unknown and a malformed id are refused, and nothing is asked", async () => {
  await using provider = startProvider("openai");
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const id = await connect(ada, provider, { kind: "openai" });
  expect((await bob.post(`/connections/${id}/test`)).status).toBe(404);
  expect((await ada.post(`/connections/${Bun.randomUUIDv7()}/test`)).status).toBe(404);
  expect((await ada.post("/connections/default/test")).status).toBe(422);
  expect((await t.request(`/connections/${id}/test`, { method: "POST" })).status).toBe(401);
  expect(provider.requests).toEqual([]);
});

test("two tests at the same time both end with a verdict", async () => {
  await using provider = startProvider("openai", { credential: KEY });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai" });
  const test = (): Promise<Answer> => ada.post(`/connections/${id}/test`);
  const answers = await Promise.all([test(), test()]);
  expect(answers.map(({ body }) => body.ok)).toEqual([true, true]);
});

async function connect(
  ada: Caller,
  { base_url }: Pick<ProviderServer, "base_url">,
  input: { kind: string; headers?: Record<string, string> },
): Promise<string> {
  const model = input.kind in MODEL_KINDS ? { model: MODELS[0] } : {};
  const { body } = await ada.post("/connections", { credential: KEY, base_url, ...model, ...input });
  return body.id;
}

function userOf(t: TestApp) {
  return t.app.db.selectFrom("users").selectAll().executeTakeFirstOrThrow();
}
