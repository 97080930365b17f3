import { expect, test } from "bun:test";
import { type Answer, type Caller, testApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { deskOf } from "./desk.ts";

const KEY = "sk-very-secret-credential-abcd";

test("a new connection comes back whole, with a hint in place of its credential", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/connections", { kind: "openai", credential: KEY, model: "gpt-x" });
  expect(answer.status).toBe(201);
  expect(answer.body).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    kind: "openai",
    category: "llm",
    label: "OpenAI",
    target: null,
    model: "gpt-x",
    ask_tools: [],
    unconfirmed: false,
    base_url: null,
    fallback_connection_id: null,
    fallback_connection_ids: [],
    monthly_budget: null,
    config: null,
    status: "untested",
    credential_hint: "…abcd",
    has_credential: true,
    auth: "key",
    expires_at: null,
    last_tested_at: null,
    last_error: null,
    used_by_inboxes: 0,
    created: t.app.now(),
    updated: t.app.now(),
  });
  expect((await ada.get("/connections")).body).toEqual([answer.body]);
});

test("no answer and no column holds the credential or a header's value in the clear", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const input = { kind: "openai", credential: KEY, headers: { "X-Team": "header-secret-1" } };
  const { body } = await ada.post("/connections", input);
  const patched = await ada.patch(`/connections/${body.id}`, { credential: `${KEY}-2`, label: "Work" });
  const listed = await ada.get("/connections");
  const rows = await t.app.db.selectFrom("connections").selectAll().execute();
  const stored = rows.map((row) => JSON.stringify(row) + Buffer.from(row.sealed ?? []).toString("latin1"));
  for (const seen of [JSON.stringify([body, patched.body, listed.body]), ...stored]) {
    expect(seen).not.toContain(KEY);
    expect(seen).not.toContain("header-secret-1");
  }
});

test("a tool says what an instruction calls it, of two with one label the newer by a number", async () => {
  await using t = await testApp({ egress: { allow: ["127.0.0.1"] } });
  const ada = await t.as("ada@example.com");
  const server = { kind: "mcp", label: "Große Liste", base_url: "http://127.0.0.1:9/mcp" };
  const made = [
    await ada.post("/connections", server),
    await ada.post("/connections", server),
    await ada.post("/connections", { kind: "notes", credential: KEY, label: "Work" }),
  ];
  const targets = ["mcp:gro-e-liste", "mcp:gro-e-liste-2", "notes"];
  expect(made.map(({ body }) => body.target)).toEqual(targets);
  const { body: renamed } = await ada.patch(`/connections/${made[0]?.body.id}`, { label: "Calendar" });
  expect(renamed.target).toBe("mcp:calendar");
  const { body: listed } = await ada.get("/connections");
  expect(listed.map(({ target }: { target: string }) => target)).toEqual([
    "mcp:calendar",
    "mcp:gro-e-liste-2",
    "notes",
  ]);
  // As connections were called before each had a name of its own.
  const alike = t.app.db.updateTable("connections").set({ label: "Große Liste" }).where("kind", "=", "mcp");
  await alike.execute();
  const old = (await ada.get("/connections")).body;
  expect(old.map(({ target }: { target: string }) => target)).toEqual(targets);
});

test("a short credential gets no hint, for it would give too much away", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "openai", credential: "short-key" });
  expect([body.credential_hint, body.has_credential]).toEqual([null, true]);
});

test("the words of other products for the same members are understood", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  for (const [index, name] of ["credential", "api_key", "token"].entries()) {
    const { status, body } = await ada.post("/connections", {
      kind: "openai_compatible",
      [name]: KEY,
      name: `Mine ${index}`,
      url: "https://models.example.com/v1",
    });
    expect([name, status, body.label, body.base_url, body.credential_hint]).toEqual([
      name,
      201,
      `Mine ${index}`,
      "https://models.example.com/v1",
      "…abcd",
    ]);
  }
  const { body } = await ada.post("/connections", {
    kind: "openai",
    credential: KEY,
    api_key: "other-credential-wxyz",
    label: "First",
    name: "Second",
  });
  expect([body.label, body.credential_hint]).toEqual(["First", "…abcd"]);
});

test("a pasted credential loses the blanks around it", async () => {
  await using model = startModelServer({ api_key: KEY });
  await using t = await testApp({ egress: { allow: ["127.0.0.1"] } });
  const { ada, inbox_id } = await deskOf(t);
  const { body } = await ada.post("/connections", {
    kind: "openai_compatible",
    base_url: model.base_url,
    model: "m",
    credential: ` ${KEY}\n`,
    headers: { "X-Team": "mail" },
  });
  await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: body.id });
  const answer = await ada.post("/v1/messages", { instruction: "x" });
  expect(answer.body.status).toBe("done");
  expect(model.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, "x-team": "mail" });
});

test.each([
  ["an unknown kind", { kind: "telepathy" }, "body.kind"],
  ["no kind", {}, "body.kind"],
  ["a hosted kind without a credential", { kind: "anthropic" }, "body.credential"],
  ["a blank credential", { kind: "openai", credential: "  " }, "body.credential"],
  ["an empty credential", { kind: "openai", credential: "" }, "body.credential"],
  ["a credential with a line break in it", { kind: "openai", credential: "a\r\nX-A: b" }, "body.credential"],
  ["a credential outside of ASCII", { kind: "openai", credential: "ключ" }, "body.credential"],
  ["a credential of null", { kind: "openai", credential: null }, "body.credential"],
  ["no base_url where one is needed", { kind: "openai_compatible" }, "body.base_url"],
  ["a base_url that is none", { kind: "openai_compatible", base_url: "models" }, "body.base_url"],
  ["a base_url by ftp", { kind: "openai_compatible", base_url: "ftp://a.example/v1" }, "body.base_url"],
  ["a file as base_url", { kind: "openai_compatible", base_url: "file:///etc/passwd" }, "body.base_url"],
  ["plain http to the net", { kind: "openai_compatible", base_url: "http://a.example/v1" }, "body.base_url"],
  ["a user in the base_url", { kind: "demo", base_url: "https://u@a.example/" }, "body.base_url"],
  ["a password in the base_url", { kind: "demo", base_url: "https://:p@a.example/" }, "body.base_url"],
  ["an empty user in the base_url", { kind: "demo", base_url: "https://@a.example/" }, "body.base_url"],
  ["a third slash in the base_url", { kind: "demo", base_url: "https:///a.example/" }, "body.base_url"],
  ["a fragment in the base_url", { kind: "demo", base_url: "https://a.example/#x" }, "body.base_url"],
  ["an empty fragment in the base_url", { kind: "demo", base_url: "https://a.example/#" }, "body.base_url"],
  ["a blank in the base_url", { kind: "demo", base_url: "https://a.example/v 1" }, "body.base_url"],
  ["a line break in the base_url", { kind: "demo", base_url: "https://a.ex\nample/v1" }, "body.base_url"],
  ["a base_url without slashes", { kind: "demo", base_url: "https:a.example" }, "body.base_url"],
  ["a base_url with backslashes", { kind: "demo", base_url: "https:\\\\a.example\\v1" }, "body.base_url"],
  ["a label of 101 characters", { kind: "demo", label: "x".repeat(101) }, "body.label"],
  ["a label of null", { kind: "demo", label: null }, "body.label"],
  ["headers as a list", { kind: "demo", headers: ["X-A: b"] }, "body.headers"],
  ["headers as text", { kind: "demo", headers: "X-A: b" }, "body.headers"],
  ["a header with a blank in its name", { kind: "demo", headers: { "X A": "b" } }, "body.headers"],
  ["a header without a name", { kind: "demo", headers: { "": "b" } }, "body.headers"],
  ["a header with a line break", { kind: "demo", headers: { "X-A": "b\r\nX-C: d" } }, "body.headers"],
  ["a Host header", { kind: "demo", headers: { HOST: "evil.example" } }, "body.headers"],
  ["a Content-Length header", { kind: "demo", headers: { "content-length": "1" } }, "body.headers"],
  [
    "more than 20 headers",
    { kind: "demo", headers: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`x-${i}`, "v"])) },
    "body.headers",
  ],
])("refuses %s", async (_what, body, path) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/connections", body);
  expect([answer.status, answer.body.errors.map((fault: { path: string }) => fault.path)]).toEqual([
    422,
    [path],
  ]);
  expect((await ada.get("/connections")).body).toEqual([]);
});

test("a pasted base_url loses the blanks around it", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const made = await ada.post("/connections", { kind: "ollama", base_url: " https://a.example/v1\n" });
  expect([made.status, made.body.base_url]).toEqual([201, "https://a.example/v1"]);
  const cleared = await ada.patch(`/connections/${made.body.id}`, { base_url: " " });
  expect(cleared.body.base_url).toBeNull();
});

test("plain http is taken for a host that the operator allowed", async () => {
  await using t = await testApp({ egress: { allow: ["ollama.lan", "10.0.5.0/24"] } });
  const ada = await t.as("ada@example.com");
  const at = (base_url: string): Promise<number> =>
    ada.post("/connections", { kind: "ollama", base_url }).then(({ status }) => status);
  expect(await at("http://ollama.lan:11434/v1")).toBe(201);
  expect(await at("http://10.0.5.7:11434/v1")).toBe(201);
  expect(await at("http://10.0.6.7:11434/v1")).toBe(422);
});

test("a patch changes what it names and nothing else", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const made = (await ada.post("/connections", { kind: "openai", credential: KEY, model: "m" })).body;
  const patch = patcher(ada, made.id);
  t.clock.advance("5m");
  expect((await patch({})).body).toEqual(made);
  const { warnings, ...same } = (await patch({ unknown: 1 })).body;
  expect([same, warnings.length]).toEqual([made, 1]);
  const renamed = await patch({ label: "Work" });
  expect(renamed.body).toEqual({ ...made, label: "Work", updated: t.app.now() });
  expect((await patch({ model: null })).body.model).toBe(null);
  expect((await patch({ base_url: "https://api.openai.com/v2" })).body.base_url).toBe(
    "https://api.openai.com/v2",
  );
  expect((await patch({ base_url: null })).body.base_url).toBe(null);
  expect((await patch({ kind: "openai" })).status).toBe(200);
  expect((await ada.get("/connections")).body[0]).toMatchObject({
    label: "Work",
    model: null,
    base_url: null,
    credential_hint: "…abcd",
  });
});

test("the kind of a connection cannot be changed", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "openai", credential: KEY });
  const answer = await patcher(ada, body.id)({ kind: "demo", label: "x" });
  expect([answer.status, answer.body.errors[0]]).toMatchObject([
    422,
    { path: "body.kind", code: "immutable" },
  ]);
  expect((await ada.get("/connections")).body).toEqual([body]);
});

test("a patch may not leave a connection that could not work", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", {
    kind: "openai_compatible",
    base_url: "https://models.example.com/v1",
  });
  const patch = patcher(ada, body.id);
  for (const change of [
    { base_url: null },
    { url: "" },
    { base_url: "http://a.example" },
    { credential: null },
    { label: null },
    { headers: null },
  ])
    expect([change, (await patch(change)).status]).toEqual([change, 422]);
  expect((await ada.get("/connections")).body).toEqual([body]);
});

test("a new credential makes a connection untested again; a new label does not", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "openai", credential: KEY });
  await t.app.db.updateTable("connections").set({ status: "error", last_error: "bad key" }).execute();
  const patch = patcher(ada, body.id);
  expect((await patch({ label: "x" })).body).toMatchObject({ status: "error", last_error: "bad key" });
  expect((await patch({ credential: "another-secret-wxyz" })).body).toMatchObject({
    status: "untested",
    last_error: null,
    credential_hint: "…wxyz",
  });
});

test("the plan's cap is told with its numbers, and room is room again after a deletion", async () => {
  await using t = await testApp({ plans: { team: { connections: 2 } } });
  const ada = await t.as("ada@example.com");
  const make = (): Promise<Answer> => ada.post("/connections", { kind: "demo" });
  const first = await make();
  await make();
  const third = await make();
  expect([third.status, third.body]).toMatchObject([
    403,
    { code: "plan_limit_reached", limit: 2, current: 2 },
  ]);
  expect((await ada.delete(`/connections/${first.body.id}`)).status).toBe(204);
  expect((await make()).status).toBe(201);
});

test("ten creations at once do not slip past the cap", async () => {
  await using t = await testApp({ plans: { team: { connections: 3 } } });
  const ada = await t.as("ada@example.com");
  const answers = await Promise.all(
    Array.from({ length: 10 }, () => ada.post("/connections", { kind: "demo" })),
  );
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
  expect((await ada.get("/connections")).body).toHaveLength(3);
});

test("a deletion answers 204 without a body and takes the connection off every inbox", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const { body } = await ada.post("/connections", { kind: "demo" });
  await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: body.id });
  expect((await ada.get("/connections")).body[0].used_by_inboxes).toBe(1);
  const deleted = await ada.delete(`/connections/${body.id}`);
  expect([deleted.status, deleted.body]).toEqual([204, ""]);
  expect((await ada.get("/inboxes")).body[0]).toMatchObject({ default_connection_id: null, routed: false });
  expect((await ada.get("/connections")).body).toEqual([]);
  expect((await ada.delete(`/connections/${body.id}`)).status).toBe(404);
});

test("every promised kind is taken, with its category and a label of its own", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const categories = {
    llm: [
      "openai",
      "anthropic",
      "google",
      "mistral",
      "groq",
      "openrouter",
      "ollama",
      "openai_compatible",
      "demo",
    ],
    mcp: ["mcp"],
    integration: ["notes", "codehost-a", "codehost-b", "sheets"],
  };
  for (const [category, kinds] of Object.entries(categories))
    for (const kind of kinds) {
      const { status, body } = await ada.post("/connections", {
        kind,
        credential: KEY,
        base_url: "https://a.example/x",
      });
      expect([kind, status, body.kind, body.category]).toEqual([kind, 201, kind, category]);
      expect(body.label).not.toBe("");
    }
});

test.each([
  "openai",
  "anthropic",
  "google",
  "mistral",
  "groq",
  "openrouter",
  "notes",
  "codehost-a",
  "codehost-b",
  "sheets",
])("a connection of the kind %s needs a credential", async (kind) => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/connections", { kind });
  expect([answer.status, answer.body.errors[0]]).toMatchObject([
    422,
    { path: "body.credential", code: "missing" },
  ]);
});

test("a tool server needs a base_url and no credential", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const without = await ada.post("/connections", { kind: "mcp" });
  expect([without.status, without.body.errors[0].path]).toEqual([422, "body.base_url"]);
  const made = await ada.post("/connections", { kind: "mcp", url: "https://tools.example.com/mcp" });
  expect([made.status, made.body.has_credential, made.body.auth]).toEqual([201, false, "none"]);
});

test("headers alone are no credential", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const input = { kind: "ollama", headers: { "X-Team": "mail-team-secret" } };
  const { body } = await ada.post("/connections", input);
  expect(body).toMatchObject({ has_credential: false, auth: "none", credential_hint: null });
  const patched = await patcher(ada, body.id)({ credential: KEY });
  expect(patched.body).toMatchObject({ has_credential: true, auth: "key", credential_hint: "…abcd" });
});

test("a connection made by OAuth says so until a key is typed in", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "notes", credential: KEY });
  await t.app.db.updateTable("connections").set({ auth: "oauth", expires_at: 5 }).execute();
  expect((await ada.get("/connections")).body[0]).toMatchObject({ auth: "oauth", expires_at: 5 });
  const patched = await patcher(ada, body.id)({ credential: KEY });
  expect(patched.body).toMatchObject({ auth: "key", expires_at: null });
});

test("the stored secrets never move to another server: they have to be sent again", async () => {
  await using t = await testApp({ egress: { allow: ["a.example"] } });
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", {
    kind: "openai_compatible",
    base_url: "https://a.example/v1",
    credential: KEY,
    headers: { "X-Team": "mail" },
  });
  const patch = patcher(ada, body.id);
  const faultsOf = async (change: object): Promise<unknown[]> => {
    const answer = await patch(change);
    return [answer.status, answer.body.errors?.[0].path, answer.body.errors?.[0].code];
  };
  for (const base_url of [
    "https://b.example/v1",
    "https://a.example:8443/v1",
    "http://a.example/v1",
    "https://a.example.evil.example/v1",
  ]) {
    expect(await faultsOf({ base_url })).toEqual([422, "body.credential", "needed_again"]);
    expect(await faultsOf({ base_url, headers: {} })).toEqual([422, "body.credential", "needed_again"]);
    expect(await faultsOf({ base_url, credential: KEY })).toEqual([422, "body.headers", "needed_again"]);
  }
  expect((await ada.get("/connections")).body).toEqual([body]);
  expect((await patch({ base_url: "https://A.example:443/other" })).status).toBe(200);
  const moved = await patch({
    base_url: "https://b.example/v1",
    credential: "new-credential-wxyz",
    headers: {},
  });
  expect([moved.status, moved.body.credential_hint]).toEqual([200, "…wxyz"]);
});

test("a hosted kind's key does not move from the provider to a base_url, nor back", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  for (const kind of ["openai", "notes"]) {
    const { body } = await ada.post("/connections", { kind, credential: KEY });
    const patch = patcher(ada, body.id);
    expect((await patch({ base_url: "https://proxy.example.com/v1" })).status).toBe(422);
    const moved = { base_url: "https://proxy.example.com/v1", credential: KEY };
    expect((await patch(moved)).status).toBe(200);
    expect((await patch({ base_url: null })).status).toBe(422);
    expect((await patch({ base_url: null, credential: KEY })).status).toBe(200);
  }
});

test("a connection without secrets may move, and is untested then", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "mcp", base_url: "https://a.example/mcp" });
  await t.app.db.updateTable("connections").set({ status: "ok" }).execute();
  const patch = patcher(ada, body.id);
  expect((await patch({ base_url: "https://a.example/mcp" })).body.status).toBe("ok");
  expect((await patch({ base_url: "https://b.example/mcp" })).body.status).toBe("untested");
});

test("a fallback is another model connection of the same account", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const foreign = (await bob.post("/connections", { kind: "demo" })).body.id;
  const tools = (await ada.post("/connections", { kind: "mcp", base_url: "https://a.example/mcp" })).body.id;
  const spare = (await ada.post("/connections", { kind: "demo", label: "Spare" })).body.id;
  const made = await ada.post("/connections", { kind: "demo", fallback_connection_id: spare });
  expect([made.status, made.body.fallback_connection_id]).toEqual([201, spare]);
  const patch = patcher(ada, made.body.id);
  for (const id of [foreign, tools, Bun.randomUUIDv7(), made.body.id, "not-an-id", 7]) {
    const answer = await patch({ fallback_connection_id: id });
    const path = answer.body.errors[0].path;
    const member = typeof id === "string" && id !== "not-an-id" ? "ids" : "id";
    expect([id, answer.status, path]).toEqual([id, 422, `body.fallback_connection_${member}`]);
  }
  expect((await ada.post("/connections", { kind: "demo", fallback_connection_id: foreign })).status).toBe(
    422,
  );
  const tool = await patcher(ada, tools)({ fallback_connection_id: spare });
  expect([tool.status, tool.body.errors[0].code]).toEqual([422, "no_fallback"]);
  expect((await patch({ label: "x" })).body.fallback_connection_id).toBe(spare);
  expect((await patch({ fallback_connection_id: null })).body.fallback_connection_id).toBe(null);
  await patch({ fallback_connection_id: spare });
  await ada.delete(`/connections/${spare}`);
  const left = (await ada.get("/connections")).body.find((one: { id: string }) => one.id === made.body.id);
  expect(left.fallback_connection_id).toBe(null);
});

test("there are up to three fallbacks, each once, in the order in which they are given", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const make = async () => (await ada.post("/connections", { kind: "demo" })).body.id as string;
  const [one, two, three, four] = [await make(), await make(), await make(), await make()];
  const patch = patcher(ada, await make());
  for (const [ids, code] of [
    [[one, one], "repeated"],
    [[one, two, three, four], undefined],
    [one, undefined],
    [[one, null], undefined],
    [null, undefined],
  ] as const) {
    const { status, body } = await patch({ fallback_connection_ids: ids });
    expect([ids, status]).toEqual([ids, 422]);
    if (code !== undefined) expect(body.errors[0].code).toBe(code);
  }
  const { body } = await patch({ fallback_connection_ids: [three, one, two] });
  expect([body.fallback_connection_id, body.fallback_connection_ids]).toEqual([three, [three, one, two]]);
  const both = await patch({ fallback_connection_id: one, fallback_connection_ids: [three, one] });
  expect([both.status, both.body.errors[0].code]).toEqual([422, "not_the_first"]);
  const again = await patch({ fallback_connection_id: three, fallback_connection_ids: [three, one] });
  expect(again.body.fallback_connection_ids).toEqual([three, one]);
  expect((await patch({ fallback_connection_id: two })).body.fallback_connection_ids).toEqual([two]);
  expect((await patch({ fallback_connection_ids: [] })).body.fallback_connection_id).toBe(null);
});

test("config is kept as it is, replaced as a whole, cleared by null, and bounded", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const config = { scopes: ["a"], nested: { deep: [1, null, "ü"] }, flag: false };
  const { body } = await ada.post("/connections", { kind: "demo", config });
  expect(body.config).toEqual(config);
  const patch = patcher(ada, body.id);
  expect((await patch({ label: "x" })).body.config).toEqual(config);
  expect((await patch({ config: { other: 1 } })).body.config).toEqual({ other: 1 });
  expect((await patch({ config: {} })).body.config).toEqual({});
  expect((await patch({ config: null })).body.config).toBe(null);
  for (const bad of [[1], "text", 7, { large: "ü".repeat(4_200) }]) {
    const answer = await patch({ config: bad });
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, "body.config"]);
  }
});

test("a deletion takes a tool server off every inbox, and uses are counted for it as well", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const mcp = { kind: "mcp", base_url: "https://a.example/mcp" };
  const first = (await ada.post("/connections", mcp)).body.id;
  const second = (await ada.post("/connections", { ...mcp, label: "Second" })).body.id;
  await ada.patch(`/inboxes/${inbox_id}`, { mcp_connection_ids: [first, second] });
  const uses = (await ada.get("/connections")).body.map(
    (one: { used_by_inboxes: number }) => one.used_by_inboxes,
  );
  expect(uses).toEqual([1, 1]);
  expect((await patcher(ada, second)({ label: "x" })).body.used_by_inboxes).toBe(1);
  expect((await ada.delete(`/connections/${first}`)).status).toBe(204);
  expect((await ada.get("/inboxes")).body[0].mcp_connection_ids).toEqual([second]);
});

test("only models can be an inbox's model, and only tool servers its tool servers", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const base_url = "https://a.example/x";
  for (const kind of ["mcp", "notes", "codehost-a", "codehost-b", "sheets"]) {
    const { body } = await ada.post("/connections", { kind, credential: KEY, base_url });
    const model = await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: body.id });
    expect([kind, model.status, model.body.errors[0].path]).toEqual([
      kind,
      422,
      "body.default_connection_id",
    ]);
    const tools = await ada.patch(`/inboxes/${inbox_id}`, { mcp_connection_ids: [body.id] });
    expect([kind, tools.status]).toEqual([kind, kind === "mcp" ? 200 : 422]);
  }
  const { body } = await ada.post("/connections", { kind: "demo" });
  expect((await ada.patch(`/inboxes/${inbox_id}`, { mcp_connection_ids: [body.id] })).status).toBe(422);
});

test("a run never takes anything but a model for one, whatever the inbox says", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const { body } = await ada.post("/connections", { kind: "notes", credential: KEY });
  await t.app.db.updateTable("inboxes").set({ default_connection_id: body.id }).execute();
  const answer = await ada.post("/v1/messages", { instruction: "x", inbox_id });
  expect([answer.status, answer.body.code]).toEqual([422, "inbox_not_routed"]);
});

test("a credential that cannot be opened any more is still there, and a new one mends it", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "openai", credential: KEY });
  await t.app.db
    .updateTable("connections")
    .set({ sealed: Buffer.alloc(60, 1) })
    .execute();
  expect((await ada.get("/connections")).body[0]).toMatchObject({ has_credential: true, auth: "key" });
  const patch = patcher(ada, body.id);
  const base_url = "https://proxy.example.com/v1";
  expect((await patch({ label: "Work" })).status).toBe(200);
  expect((await patch({ base_url })).body.errors[0].path).toBe("body.credential");
  const mended = await patch({ base_url, credential: "another-secret-wxyz" });
  expect([mended.status, mended.body.credential_hint]).toEqual([200, "…wxyz"]);
});

test("plain http is taken for an allowed IPv6 address", async () => {
  await using t = await testApp({ egress: { allow: ["fd00::/8"] } });
  const ada = await t.as("ada@example.com");
  const { status } = await ada.post("/connections", {
    kind: "ollama",
    base_url: "http://[fd00::7]:11434/v1",
  });
  expect(status).toBe(201);
});

function patcher(ada: Caller, id: string): (change: object) => Promise<Answer> {
  return (change) => ada.patch(`/connections/${id}`, change);
}

test("a plain address of a machine that the operator has not named is refused with the lines that name it", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/connections", {
    kind: "openai_compatible",
    base_url: "http://192.168.1.20:1234/v1",
    model: "local",
    credential: "none",
  });
  expect([answer.status, answer.body.code]).toEqual([422, "validation_error"]);
  expect(answer.body.fix).toContain('allow = ["192.168.1.20"] under [egress]');
});
