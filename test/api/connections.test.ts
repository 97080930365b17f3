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
    model: "gpt-x",
    base_url: null,
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

test("a short credential gets no hint, for it would give too much away", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body } = await ada.post("/connections", { kind: "openai", credential: "short-key" });
  expect([body.credential_hint, body.has_credential]).toEqual([null, true]);
});

test("the words of other products for the same members are understood", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  for (const name of ["credential", "api_key", "token"]) {
    const { status, body } = await ada.post("/connections", {
      kind: "openai_compatible",
      [name]: KEY,
      name: "Mine",
      url: "https://models.example.com/v1",
    });
    expect([name, status, body.label, body.base_url, body.credential_hint]).toEqual([
      name,
      201,
      "Mine",
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
  ["a fragment in the base_url", { kind: "demo", base_url: "https://a.example/#x" }, "body.base_url"],
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
  expect((await patch({ unknown: 1 })).body).toEqual(made);
  const renamed = await patch({ label: "Work" });
  expect(renamed.body).toEqual({ ...made, label: "Work", updated: t.app.now() });
  expect((await patch({ model: null })).body.model).toBe(null);
  expect((await patch({ base_url: "https://proxy.example.com/v1" })).body.base_url).toBe(
    "https://proxy.example.com/v1",
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

test("every promised kind of model is taken", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const kinds = ["openai", "anthropic", "google", "mistral", "groq", "openrouter", "ollama", "demo"];
  for (const kind of kinds) {
    const { status, body } = await ada.post("/connections", { kind, credential: KEY });
    expect([kind, status, body.kind, body.category]).toEqual([kind, 201, kind, "llm"]);
  }
});

function patcher(ada: Caller, id: string): (change: object) => Promise<Answer> {
  return (change) => ada.patch(`/connections/${id}`, change);
}
