import { expect, test } from "bun:test";
import { pullModel } from "../../src/resources/connections/pull-model.ts";
import type { ConnectionKind } from "../../src/resources/connections/kinds.ts";
import { examine } from "../../src/operation/doctor/doctor.ts";
import { type Caller, testApp } from "../support/app.ts";
import { type ProviderServer, startProvider } from "../support/provider-server.ts";

const KEY = "sk-very-secret-credential-abcd";
const LOCAL = { egress: { allow: ["127.0.0.1"] } };
const GPTS = ["gpt-4.1", "gpt-5", "gpt-5-mini", "o4", "whisper-1"];

test("a model that is not there does not work, and the nearest names are offered", async () => {
  await using provider = startProvider("openai", { credential: KEY, models: GPTS });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai", model: "gpt-9" });
  const { body } = await ada.post(`/connections/${id}/test`);
  expect(body).toMatchObject({
    ok: false,
    status: "error",
    models: GPTS,
    error: { code: "model_not_found", http_status: null },
  });
  expect(body.error.message).toContain('has no model "gpt-9". It has gpt-5, ');
  expect((await ada.get("/connections")).body[0]).toMatchObject({
    status: "error",
    last_error: body.error.message,
  });
  const patched = await ada.patch(`/connections/${id}`, { model: "gpt-5" });
  expect(patched.body).toMatchObject({ status: "untested", last_error: null });
  expect((await ada.post(`/connections/${id}/test`)).body).toMatchObject({ ok: true, error: null });
});

test("of a megabyte of names, the first are offered, and the chosen one is found wherever it stands", async () => {
  const filler = numbers(4_000).map((name) => name.padEnd(190, "-x"));
  await using provider = startProvider("openai", { models: [...filler, KEY, "gpt-9"] });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const input = { kind: "openai", base_url: provider.base_url, credential: KEY };
  const found = await ada.post("/connections/test", { ...input, model: "gpt-9" });
  expect(found.body).toMatchObject({ ok: true, models: filler.slice(0, 200) });
  const missing = await ada.post("/connections/test", { ...input, model: KEY.slice(0, -1) });
  expect(missing.body).toMatchObject({ ok: false, error: { code: "model_not_found" } });
  // Those behind the first were not looked through for the credential.
  expect(missing.body.error.message).not.toContain(KEY);
  expect(missing.body.models).not.toContain(KEY);
});

test("of many models the three nearest are named", async () => {
  await using provider = startProvider("openai", { models: ["zebra", "gpt-5", ...numbers(40)] });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai", model: "gpt5" });
  const { error } = (await ada.post(`/connections/${id}/test`)).body;
  expect(error.message).toMatch(/has no model "gpt5"\. Nearest to it are gpt-5, [^,]+, [^,]+\.$/);
});

test("the usual model of a kind must be there too, and one without a usual one has to name one", async () => {
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  await using openai = startProvider("openai", { models: GPTS });
  const usual = await ada.post(`/connections/${await connect(ada, openai, { kind: "openai" })}/test`);
  expect(usual.body.error.message).toContain('has no model "gpt-5.4-mini"');
  await using other = startProvider("openai_compatible", { models: GPTS });
  const none = await ada.post(
    `/connections/${await connect(ada, other, { kind: "openai_compatible" })}/test`,
  );
  expect(none.body.error).toMatchObject({ code: "model_not_found" });
  expect(none.body.error.message).toContain("needs the name of a model. It has ");
});

const MEANT: [ConnectionKind, string[], string, string[]?][] = [
  ["openai", ["gpt-5"], "gpt-5"],
  ["anthropic", ["claude-sonnet-5"], "claude-sonnet-5"],
  ["google", ["gemini-3"], "models/gemini-3"],
  ["ollama", ["llama3.2:latest"], "llama3.2"],
  ["ollama", ["registry.local:5000/me/own:latest"], "registry.local:5000/me/own"],
  ["openrouter", ["some/model"], "some/model:nitro"],
  ["openai", ["gpt-5"], "gpt-5-alias", ["gpt-5-alias"]],
  // What lists nothing cannot be asked.
  ["openai_compatible", [], "mine"],
];

test.each(MEANT)("%s that lists %p has %s", async (kind, models, model, unlisted = []) => {
  await using provider = startProvider(kind as "openai", { models, unlisted });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections/test", {
    kind,
    credential: KEY,
    base_url: provider.base_url,
    model,
  });
  expect(body).toMatchObject({ ok: true, error: null });
});

test("whether a model is there stays open where the provider is down when it is asked for it", async () => {
  const answer = ({ path }: { path: string }) =>
    path === "/v1/models"
      ? Response.json({ data: [{ id: "gpt-5" }] })
      : Response.json({ error: { message: "down" } }, { status: 503 });
  await using provider = startProvider("openai", { answer });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const id = await connect(ada, provider, { kind: "openai", model: "gpt-9" });
  expect((await ada.post(`/connections/${id}/test`)).body.error).toMatchObject({
    code: "bad_response",
    http_status: 503,
  });
});

test("a recipe takes a model that works, else one that was not tested, and one that does not only where there is no other", async () => {
  await using provider = startProvider("openai", { models: GPTS });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const broken = await connect(ada, provider, { kind: "openai", model: "gpt-9" });
  await ada.post(`/connections/${broken}/test`);
  const apply = async (id: string) => {
    const { body } = await ada.post(`/recipes/${id}/apply`);
    return { model: body.created.inboxes[0].default_connection_id, steps: body.next_steps };
  };
  const only = await apply("email-summarizer");
  expect(only.model).toBe(broken);
  expect(only.steps).toEqual([
    'The LLM connection “OpenAI” of the inbox "Summaries" did not work when it was asked last: test it, and mend what it says',
  ]);
  const untested = await connect(ada, provider, { kind: "openai", model: "gpt-5" });
  expect((await apply("translate")).model).toBe(untested);
  const good = await connect(ada, provider, { kind: "openai", model: "gpt-5-mini" });
  await ada.post(`/connections/${good}/test`);
  expect((await apply("meeting-notes")).model).toBe(good);
});

test("a draft is tested and nothing of it is kept", async () => {
  await using provider = startProvider("openai", { credential: KEY, models: GPTS });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const draft = { kind: "openai", base_url: provider.base_url, credential: KEY, model: "gpt-5" };
  expect((await ada.post("/connections/test", draft)).body).toMatchObject({ ok: true, models: GPTS });
  const wrong = await ada.post("/connections/test", { ...draft, credential: "sk-another-one-entirely" });
  expect(wrong.body).toMatchObject({ ok: false, error: { code: "invalid_credentials" } });
  const bad = await ada.post("/connections/test", { kind: "openai" });
  expect([bad.status, bad.body.errors[0].path]).toEqual([422, "body.credential"]);
  expect((await ada.get("/connections")).body).toEqual([]);
  expect((await t.request("/connections/test", { method: "POST" })).status).toBe(401);
});

test("a draft of a tool server is tested as well", async () => {
  await using provider = startProvider("mcp", { credential: KEY });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const draft = { kind: "mcp", base_url: provider.base_url, credential: KEY };
  expect((await ada.post("/connections/test", draft)).body).toMatchObject({ ok: true, detail: "2 tools" });
});

test("a base URL that lacks its /v1, or ends with a call, is told where the interface is, and only if it is there", async () => {
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const models = () => Response.json({ data: GPTS.map((id) => ({ id })) });
  const wrong = () => Response.json({ error: { message: "no" } }, { status: 401 });
  const answer = ({ path, headers }: { path: string; headers: Record<string, string> }) => {
    if (path !== "/v1/models") return new Response("Not here", { status: 404 });
    return headers["authorization"] === `Bearer ${KEY}` ? models() : wrong();
  };
  await using provider = startProvider("openai_compatible", { answer });
  const draft = { kind: "openai_compatible", base_url: `${provider.origin}/`, model: "gpt-5" };
  for (const credential of [KEY, "sk-a-wrong-credential"]) {
    const { body } = await ada.post("/connections/test", { ...draft, credential });
    expect(body).toMatchObject({
      ok: false,
      error: { code: "bad_response", http_status: 404 },
      suggested_base_url: `${provider.origin}/v1`,
    });
    expect(body.error.message).toContain(`but at ${provider.origin}/v1.`);
  }
  const right = { ...draft, base_url: `${provider.origin}/v1`, credential: `Bearer ${KEY}` };
  expect((await ada.post("/connections/test", right)).body.ok).toBe(true);
  for (const path of ["/v1/chat/completions", "/chat/completions", "/v1/models"]) {
    const pasted = { ...draft, base_url: `${provider.origin}${path}`, credential: KEY };
    const { body } = await ada.post("/connections/test", pasted);
    expect(body.suggested_base_url).toBe(`${provider.origin}/v1`);
  }
  await using nothing = startProvider("openai_compatible", { fault: "not_found" });
  const { body } = await ada.post("/connections/test", { ...draft, base_url: nothing.origin });
  expect(body.error.code).toBe("bad_response");
  expect(body).not.toHaveProperty("suggested_base_url");
});

test.each(["json", "sse", "stateless"] as const)(
  "an address of a tool server (%s) that lacks its /mcp is told where the interface is, and only if it is there",
  async (mcp) => {
    await using t = await testApp(LOCAL);
    const ada = await t.as("ada@example.com");
    await using provider = startProvider("mcp", { mcp, credential: KEY });
    for (const base_url of [provider.origin, `${provider.origin}/`]) {
      const { body } = await ada.post("/connections/test", { kind: "mcp", base_url, credential: KEY });
      expect(body).toMatchObject({ ok: false, suggested_base_url: `${provider.origin}/mcp` });
      expect(body.error.message).toContain(`but at ${provider.origin}/mcp. Use that address.`);
    }
    const headers = { "www-authenticate": "Bearer" };
    const answer = ({ path }: { path: string }) =>
      new Response(null, path === "/mcp" ? { status: 401, headers } : { status: 404 });
    await using guarded = startProvider("mcp", { answer });
    const asked = await ada.post("/connections/test", { kind: "mcp", base_url: guarded.origin });
    expect(asked.body.suggested_base_url).toBe(`${guarded.origin}/mcp`);
    const right = { kind: "mcp", base_url: `${provider.origin}/mcp`, credential: KEY };
    expect((await ada.post("/connections/test", right)).body.ok).toBe(true);
    await using nothing = startProvider("mcp", { fault: "not_found" });
    const { body } = await ada.post("/connections/test", { kind: "mcp", base_url: nothing.origin });
    expect(body).not.toHaveProperty("suggested_base_url");
    expect(body.error.message).toContain("Check the address.");
  },
);

test("no two connections of an account have one name, and nobody is refused for it", async () => {
  await using t = await testApp();
  const [ada, bob] = [await t.as("ada@example.com"), await t.as("bob@example.com")];
  const make = async (caller: Caller, label?: string) =>
    (await caller.post("/connections", { kind: "demo", ...(label === undefined ? {} : { label }) })).body;
  const labels = [
    await make(ada, "Work"),
    await make(ada, "work"),
    await make(ada, "Work"),
    await make(bob, "Work"),
  ];
  expect(labels.map(({ label }) => label)).toEqual(["Work", "work 2", "Work 3", "Work"]);
  const long = "x".repeat(100);
  await make(ada, long);
  expect((await make(ada, long)).label).toBe(`${"x".repeat(98)} 2`);
  const spare = await make(ada);
  const rename = async (label: string) => (await ada.patch(`/connections/${spare.id}`, { label })).body.label;
  expect([await rename("WORK"), await rename("WORK 4"), await rename("Spare")]).toEqual([
    "WORK 4",
    "WORK 4",
    "Spare",
  ]);
  const both = await Promise.all([make(ada, "Twin"), make(ada, "Twin")]);
  expect(both.map(({ label }) => label).toSorted()).toEqual(["Twin", "Twin 2"]);
});

test("two that have had one name keep it when something else is changed", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const ids = [];
  for (const label of ["A", "B"]) ids.push((await ada.post("/connections", { kind: "demo", label })).body.id);
  await t.app.db.updateTable("connections").set({ label: "Old" }).execute();
  const { status, body } = await ada.patch(`/connections/${ids[1]}`, { label: "Old", model: "demo" });
  expect([status, body.label]).toEqual([200, "Old"]);
});

test("the doctor says that a model of [llm] is not there", async () => {
  await using provider = startProvider("openai", { models: GPTS });
  const llm = { kind: "openai" as const, base_url: provider.base_url, api_key: KEY, model: "gpt-5" };
  const found = async (models: string[]) => {
    await using t = await testApp({ llm: { ...llm, models } });
    const findings = await examine(t.app, { running: false });
    return findings.find(({ name }) => name === "model provider");
  };
  expect(await found([])).toMatchObject({ verdict: "ok" });
  expect(await found(["gpt-9"])).toMatchObject({
    verdict: "fail",
    found: expect.stringContaining('no model "gpt-9"'),
  });
}, 60_000);

const MB = 1_000_000;
const PULL_LINES = [
  { status: "pulling manifest" },
  ...Array.from({ length: 50 }, (_, part) => ({ status: "pulling 1", total: 50 * MB, completed: part * MB })),
  { status: "verifying sha256 digest" },
  { status: "success" },
];

test("an Ollama fetches a model, and how far it is is told", async () => {
  const { events, requests } = await pulled(PULL_LINES.map((line) => JSON.stringify(line)));
  expect(events[0]).toEqual({ status: "pulling manifest" });
  expect(events.at(-1)).toEqual({ done: true });
  expect(events.length).toBeLessThan(10);
  expect(requests).toMatchObject([
    { method: "POST", path: "/api/pull", body: { model: "tiny", stream: true } },
  ]);
});

const BROKEN_PULLS: [string, string[], string][] = [
  [
    "says that there is none",
    ['{"error":"pull model manifest: file does not exist"}'],
    "file does not exist",
  ],
  ["breaks off", ['{"status":"pulling manifest"}'], "broke off before the model was there"],
  [
    "talks of something else",
    ["<html>", "[]", '{"status":7}', "null"],
    "broke off before the model was there",
  ],
  ["repeats the credential", [`{"error":"no entry for ${KEY}"}`], "no entry for [key]"],
];

test.each(BROKEN_PULLS)("an Ollama that %s is told so", async (_, lines, words) => {
  const { events } = await pulled(lines);
  expect(events.at(-1)?.error).toContain(words);
});

test("a model is fetched for administrators, by Ollama alone, and one at a time", async () => {
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  await t.app.db.updateTable("users").set({ is_admin: 1 }).where("id", "=", ada.user.id).execute();
  const bob = await t.as("bob@example.com");
  await using hanging = startProvider("ollama", { fault: "hang" });
  const draft = { kind: "ollama", base_url: hanging.base_url, model: "tiny" };
  expect((await bob.post("/connections/pull", draft)).body.code).toBe("admin_required");
  const other = await ada.post("/connections/pull", { kind: "openai", credential: KEY });
  expect([other.status, other.body.errors[0].code]).toEqual([422, "not_ollama"]);
  const made = (await bob.post("/connections", { kind: "ollama" })).body.id;
  expect((await ada.post(`/connections/${made}/pull`, { model: "tiny" })).status).toBe(404);
  const { id: _id, ...row } = await t.app.db.selectFrom("connections").selectAll().executeTakeFirstOrThrow();
  const user = await t.app.db
    .selectFrom("users")
    .selectAll()
    .where("id", "=", ada.user.id)
    .executeTakeFirstOrThrow();
  const gone = new AbortController();
  const begin = () =>
    pullModel(t.app, user, { row: { ...row, id: "x", base_url: hanging.base_url }, gone: gone.signal });
  const first = begin();
  expect(begin).toThrow("being fetched for this account already");
  gone.abort();
  expect(await new Response(first).text()).toContain("about to stop");
  const second = begin();
  await second.cancel();
  await begin().cancel();
});

async function pulled(lines: string[]) {
  await using provider = startProvider("ollama", { answer: () => new Response(`${lines.join("\n")}\n`) });
  await using t = await testApp(LOCAL);
  const ada = await t.as("ada@example.com");
  const body = { kind: "ollama", base_url: provider.base_url, credential: KEY, model: "tiny" };
  await ada.post("/connections", body);
  const row = await t.app.db.selectFrom("connections").selectAll().executeTakeFirstOrThrow();
  const user = await t.app.db.selectFrom("users").selectAll().executeTakeFirstOrThrow();
  const stream = pullModel(t.app, user, { row, gone: new AbortController().signal });
  const text = await new Response(stream).text();
  const events = text
    .split("\n\n")
    .filter(Boolean)
    .map((event) => JSON.parse(event.replace("data: ", "")) as Record<string, unknown> & { error?: string });
  return { events, requests: provider.requests };
}

async function connect(
  ada: Caller,
  { base_url }: Pick<ProviderServer, "base_url">,
  input: { kind: string; model?: string },
): Promise<string> {
  return (await ada.post("/connections", { credential: KEY, base_url, ...input })).body.id;
}

function numbers(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `model-${index}`);
}
