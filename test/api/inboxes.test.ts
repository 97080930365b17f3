import { expect, test } from "bun:test";
import { newLocalPart, prefixOf } from "../../src/resources/inboxes/addresses.ts";
import { type Answer, type Caller, testApp, type TestApp } from "../support/app.ts";
import { deskOf } from "./desk.ts";
import { ownMs } from "../support/own-time.ts";

test("an inbox can be made of nothing, and comes back whole", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const answer = await ada.post("/inboxes", {});
  expect(answer.status).toBe(201);
  const { local_part } = answer.body;
  expect(local_part).toMatch(/^[a-hjkmnp-z2-9]{12}$/);
  expect(answer.body).toEqual({
    id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    label: "Inbox",
    address: `${local_part}@mw.test`,
    local_part,
    prefix: null,
    domain: "mw.test",
    domain_id: null,
    default_connection_id: null,
    mcp_connection_ids: [],
    monthly_budget: null,
    context_ids: null,
    reply_enabled: true,
    allowlist_senders: [],
    scope: null,
    inbound_policy: {
      reply_to_unauthenticated: false,
      process_bulk: false,
      process_unauthenticated: false,
    },
    retention_days: null,
    paused: null,
    default_instruction: null,
    rules: [],
    rules_version: "4f53cda18c2baa0c",
    enabled: true,
    is_default: true,
    problem:
      "This inbox has no model, so nothing that comes to it is worked on. Choose one on its page, under “Settings”.",
    routed: false,
    created: t.app.now(),
    updated: t.app.now(),
  });
  expect((await ada.get("/inboxes")).body).toEqual([answer.body]);
});

test("an inbox without a connection of its own is all right where the server has a model", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const { body } = await (await t.as("ada@example.com")).post("/inboxes", {});
  expect([body.routed, body.problem]).toEqual([true, null]);
});

test("an inbox takes everything that it can be made with", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: connection } = await ada.post("/connections", { kind: "demo" });
  const calendar = await toolServer(ada, "Calendar");
  const context = await contextOf(ada);
  const domain = await customDomain(t, ada, "example.org", "active");
  const input = {
    label: "Q3 Reports & more",
    default_connection_id: connection.id,
    mcp_connection_ids: [calendar],
    context_ids: [context],
    domain_id: domain,
    retention_days: 30,
    reply_enabled: false,
    allowlist_senders: ["bob@example.com"],
    scope: { targets: ["notes", "mcp:calendar"], autonomous: ["notes"] },
    inbound_policy: { process_bulk: true },
    paused: "keep",
    default_instruction: "Sum it up",
  };
  const { status, body } = await ada.post("/inboxes", input);
  expect(status).toBe(201);
  expect(body).toMatchObject({
    ...input,
    prefix: "q3-reports-more",
    domain: "example.org",
    address: `${body.local_part}@example.org`,
    inbound_policy: { reply_to_unauthenticated: false, process_bulk: true },
    routed: true,
  });
  expect(body.local_part).toMatch(/^q3-reports-more-[a-z2-9]{12}$/);
});

test.each([
  ["Q3 Reports & more", "q3-reports-more"],
  ["Ångström Über", "angstrom-uber"],
  ["  --a--b--  ", "a-b"],
  ["日本語", null],
  ["", null],
  ["postmaster", null],
  ["Abuse", null],
  ["no-reply", null],
  ["Mailwright", null],
  ["x".repeat(60), "x".repeat(24)],
  [`${"x".repeat(23)}-yz`, "x".repeat(23)],
])("the readable part of %p is %p", (label, prefix) => {
  expect(prefixOf(label)).toBe(prefix);
});

test("a local part is at most 64 octets and never the same twice", () => {
  const parts = Array.from({ length: 1_000 }, () => newLocalPart("x".repeat(24)));
  expect(new Set(parts).size).toBe(1_000);
  expect(Math.max(...parts.map((part) => part.length))).toBeLessThanOrEqual(64);
});

test("a patch changes what it names and nothing else; null clears what may be empty", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const { body: connection } = await ada.post("/connections", { kind: "demo" });
  const { body: made } = await ada.post("/inboxes", {
    label: "Desk",
    default_connection_id: connection.id,
    allowlist_senders: ["bob@example.com"],
    scope: { targets: [] },
    inbound_policy: { process_bulk: true },
  });
  const patch = (change: object): Promise<Answer> => ada.patch(`/inboxes/${made.id}`, change);
  t.clock.advance("5m");
  expect((await patch({})).body).toEqual(made);
  const { warnings, ...same } = (await patch({ address: "x@y.z", id: 1, prefix: "new" })).body;
  expect(same).toEqual(made);
  expect(warnings.map(({ path }: { path: string }) => path)).toEqual([
    "body.address",
    "body.id",
    "body.prefix",
  ]);
  const renamed = await patch({ label: "Front desk" });
  // The address was given out: it stays.
  expect(renamed.body).toEqual({ ...made, label: "Front desk", updated: t.app.now() });
  expect((await patch({ label: null })).body.label).toBe("");
  expect((await patch({ scope: null })).body.scope).toBe(null);
  expect((await patch({ default_connection_id: null })).body).toMatchObject({
    default_connection_id: null,
    routed: false,
  });
  expect((await patch({ inbound_policy: { reply_to_unauthenticated: true } })).body.inbound_policy).toEqual({
    reply_to_unauthenticated: true,
    process_bulk: true,
    process_unauthenticated: false,
  });
  expect((await patch({ reply_enabled: false })).body.reply_enabled).toBe(false);
  expect((await patch({ allowlist_senders: [] })).body.allowlist_senders).toEqual([]);
});

test.each([
  "label",
  "allowlist_senders",
  "mcp_connection_ids",
  "context_ids",
  "scope",
  "inbound_policy",
  "reply_enabled",
  "default_connection_id",
  "retention_days",
  "paused",
  "default_instruction",
  "prefix",
  "domain_id",
])("a value of the wrong kind for %s is refused, never read as something else", async (member) => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const right: Record<string, (value: unknown) => boolean> = {
    label: (value) => typeof value === "string" || value === null,
    prefix: (value) => typeof value === "string",
    reply_enabled: (value) => typeof value === "boolean",
    allowlist_senders: (value) => JSON.stringify(value) === "[]",
    mcp_connection_ids: (value) => JSON.stringify(value) === "[]",
    context_ids: (value) => JSON.stringify(value) === "[]" || value === null,
    retention_days: (value) => value === 7 || value === null,
    domain_id: (value) => value === null,
    paused: (value) => value === null,
    default_instruction: (value) => typeof value === "string" || value === null,
    scope: (value) => value === null,
    default_connection_id: (value) => value === null,
    inbound_policy: (value) => typeof value === "object" && value !== null && !Array.isArray(value),
  };
  const values = [{}, [], "x", 7, true, null, "", { length: 2 }, [[]], [{}], [null], [7]];
  for (const value of [...values, { targets: "abc" }, { targets: {} }, { targets: [7] }]) {
    const taken = right[member]?.(value) ?? false;
    const made = await ada.post("/inboxes", { [member]: value });
    expect([value, made.status]).toEqual([value, taken ? 201 : 422]);
    const changed = await ada.patch(`/inboxes/${inbox_id}`, { [member]: value });
    if (member !== "prefix" && member !== "domain_id")
      expect([value, changed.status]).toEqual([value, taken ? 200 : 422]);
  }
});

test("a foreign, an unknown and a malformed connection are all refused at their place", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const bob = await t.as("bob@example.com");
  const foreign = (await bob.post("/connections", { kind: "demo" })).body.id;
  const own = (await ada.post("/connections", { kind: "demo" })).body.id;
  for (const id of [foreign, Bun.randomUUIDv7()]) {
    const answer = await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: id });
    expect([answer.status, answer.body.errors]).toEqual([
      422,
      [
        {
          path: "body.default_connection_id",
          code: "connection_not_found",
          message: "connection not found",
        },
      ],
    ]);
    const listed = await ada.post("/inboxes", { mcp_connection_ids: [id] });
    expect([listed.status, listed.body.errors[0].path]).toEqual([422, "body.mcp_connection_ids"]);
  }
  // A tool server is no model, and a model no tool server.
  const tools = { kind: "mcp", label: "Files", base_url: "https://tools.example.com/mcp" };
  const tool_server = (await ada.post("/connections", tools)).body.id;
  const no_model = await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: tool_server });
  expect([no_model.status, no_model.body.errors[0]]).toEqual([
    422,
    {
      path: "body.default_connection_id",
      code: "no_model",
      message: 'The connection "Files" is to a tool server, not to a model. Name one to a model.',
    },
  ]);
  const fallbacks = await ada.patch(`/connections/${own}`, { fallback_connection_ids: [tool_server] });
  expect([fallbacks.status, fallbacks.body.errors[0].code]).toEqual([422, "no_model"]);
  expect((await ada.patch(`/inboxes/${inbox_id}`, { mcp_connection_ids: [own] })).status).toBe(422);
  expect((await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: "own" })).status).toBe(422);
  expect((await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: own })).status).toBe(200);
});

test("allowed senders are stored in one form, each once", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const { status, body } = await ada.patch(`/inboxes/${inbox_id}`, {
    allowlist_senders: [
      " Bob@Example.COM ",
      "bob@example.com",
      "@example.org",
      "*@example.org",
      "@*.example.net",
      "ann+news@büro.example",
      "Re\u0301ne\u0301@example.org",
      "r\u00e9n\u00e9@example.org",
    ],
  });
  expect(status).toBe(200);
  expect(body.allowlist_senders).toEqual([
    "bob@example.com",
    "@example.org",
    "@*.example.net",
    "ann+news@xn--bro-hoa.example",
    "r\u00e9n\u00e9@example.org",
  ]);
});

test.each([
  "",
  "bob",
  "@",
  "*",
  "*@",
  "bob@",
  "bob@localhost",
  "Bob <bob@example.com>",
  "a b@example.com",
  "bob@example.com, ann@example.com",
  "*.example.com",
  "@*",
  "b*b@example.com",
  "bob@exa mple.com",
  "bob@[127.0.0.1]",
  "bob\u{0}@example.com",
  "bob@example.com/evil",
  "bob@example.com#x",
  "bob@example.com?x",
  "bob@example%2ecom",
  "bob@192.0.2.1",
  "@0x7f.1",
  "bob@-a.example",
  `bob@${"a".repeat(64)}.example`,
])("%p is not an allowed sender", async (entry) => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const answer = await ada.patch(`/inboxes/${inbox_id}`, {
    allowlist_senders: ["ann@example.com", entry],
  });
  expect([answer.status, answer.body.errors[0]]).toMatchObject([
    422,
    { path: "body.allowlist_senders.1", code: "invalid_sender" },
  ]);
});

test("a scope holds known targets, and lets run alone only what it allows", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  await toolServer(ada, "My Calendar");
  await toolServer(await t.as("bob@example.com"), "Bobs tools");
  const patch = (scope: unknown): Promise<Answer> => ada.patch(`/inboxes/${inbox_id}`, { scope });
  const all = ["ai", "notes", "codehost-a", "codehost-b", "sheets", "mcp:my-calendar", "my-calendar"];
  expect((await patch({ targets: all })).body.scope).toEqual({ targets: all, autonomous: [] });
  expect((await patch({ targets: ["notes", "notes"], autonomous: ["notes"] })).body.scope).toEqual({
    targets: ["notes"],
    autonomous: ["notes"],
  });
  for (const [one, other] of [
    ["my-calendar", "mcp:my-calendar"],
    ["mcp:my-calendar", "my-calendar"],
  ])
    expect((await patch({ targets: [one], autonomous: [other] })).body.scope).toEqual({
      targets: [one],
      autonomous: [other],
    });
  expect((await patch({ targets: null })).body.scope).toBeNull();
  expect((await patch({ targets: null, autonomous: [] })).body.scope).toBeNull();
  expect((await patch({ targets: null, autonomous: ["notes"] })).body.scope).toEqual({
    targets: null,
    autonomous: ["notes"],
  });
  expect((await patch({ targets: [] })).body.scope).toEqual({ targets: [], autonomous: [] });
  for (const [scope, path] of [
    [{ targets: ["everything"] }, "body.scope.targets"],
    [{ targets: ["mcp:"] }, "body.scope.targets"],
    [{ targets: [""] }, "body.scope.targets"],
    [{ targets: ["mcp:notes"] }, "body.scope.targets"],
    [{ targets: ["mcp:bobs-tools"] }, "body.scope.targets"],
    [{ targets: ["mcp:Big Tool"] }, "body.scope.targets"],
    [{ targets: ["notes"], autonomous: ["sheets"] }, "body.scope.autonomous"],
    [{ targets: null, autonomous: ["everything"] }, "body.scope.autonomous"],
    [{ autonomous: [] }, "body.scope.targets"],
  ] as const) {
    const answer = await patch(scope);
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, path]);
  }
  expect((await patch({ targets: ["bobs-tools"] })).body.detail).toBe(
    '"bobs-tools" is not a target. Available: ai, memory, notes, codehost-a, codehost-b, sheets, mcp:my-calendar.',
  );
  expect((await ada.get("/inboxes")).body[0].scope).toEqual({ targets: [], autonomous: [] });
});

test("a tool server that gets another name keeps what an inbox lets it do by itself, also where all targets are allowed", async () => {
  await using t = await testApp({ egress: { allow: ["127.0.0.1"] } });
  const { ada, inbox_id } = await deskOf(t);
  const server = { kind: "mcp", label: "Calendar", base_url: "http://127.0.0.1:9/mcp" };
  const { body: made } = await ada.post("/connections", server);
  await ada.patch(`/inboxes/${inbox_id}`, {
    mcp_connection_ids: [made.id],
    scope: { targets: null, autonomous: ["mcp:calendar"] },
  });
  expect((await ada.patch(`/connections/${made.id}`, { label: "Dates" })).status).toBe(200);
  expect((await ada.get(`/inboxes/${inbox_id}`)).body.scope).toEqual({
    targets: null,
    autonomous: ["mcp:dates"],
  });
  expect((await ada.delete(`/connections/${made.id}`)).status).toBe(204);
  expect((await ada.get(`/inboxes/${inbox_id}`)).body.scope).toEqual({ targets: null, autonomous: [] });
});

test("the plan's caps on inboxes and on allowed senders are told with their numbers", async () => {
  await using t = await testApp({ plans: { team: { inboxes: 2, allowlist_entries: 2 } } });
  const { ada, inbox_id } = await deskOf(t);
  const many = await ada.patch(`/inboxes/${inbox_id}`, {
    allowlist_senders: ["a@x.example", "b@x.example", "c@x.example"],
  });
  expect([many.status, many.body]).toMatchObject([403, { code: "plan_limit_reached", limit: 2 }]);
  await ada.post("/inboxes", {});
  const third = await ada.post("/inboxes", {});
  expect([third.status, third.body]).toMatchObject([
    403,
    { code: "plan_limit_reached", limit: 2, current: 2 },
  ]);
  expect(third.body.detail).toContain("2 inboxes");
  expect(third.body.fix).toBeString();
});

test("ten creations at once do not slip past the cap", async () => {
  await using t = await testApp({ plans: { team: { inboxes: 3 } } });
  const ada = await t.as("ada@example.com");
  const answers = await Promise.all(Array.from({ length: 10 }, () => ada.post("/inboxes", {})));
  expect(answers.filter(({ status }) => status === 201)).toHaveLength(3);
  expect(answers.filter(({ status }) => status === 403)).toHaveLength(7);
});

test("a deleted inbox is gone, its address is retired and its history stays readable", async () => {
  await using t = await testApp({ llm: { kind: "demo" } });
  const { ada, inbox_id } = await deskOf(t);
  const { address } = (await ada.get("/inboxes")).body[0];
  const called = await ada.post("/v1/messages", { instruction: "x" });
  const deleted = await ada.delete(`/inboxes/${inbox_id}`);
  expect([deleted.status, deleted.body]).toEqual([204, ""]);
  expect((await ada.get("/inboxes")).body).toEqual([]);
  expect((await ada.delete(`/inboxes/${inbox_id}`)).status).toBe(404);
  expect((await ada.patch(`/inboxes/${inbox_id}`, {})).status).toBe(404);
  expect(await t.app.db.selectFrom("retired_addresses").selectAll().execute()).toEqual([
    { address, retired_at: t.app.now() },
  ]);
  expect((await ada.get("/messages")).body.items[0]).toMatchObject({
    message_id: called.body.message_id,
    inbox_id: null,
    status: "done",
  });
  expect((await ada.get(`/v1/messages/${called.body.message_id}`)).body.status).toBe("done");
  // Its conversation belongs to no inbox any more, so it cannot be continued through another one.
  await ada.post("/inboxes", {});
  const continued = await ada.post("/v1/messages", {
    instruction: "y",
    conversation_id: called.body.conversation_id,
  });
  expect(continued.status).toBe(422);
});

test("a label has up to a hundred characters, however many bytes they are", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const patch = (label: unknown): Promise<Answer> => ada.patch(`/inboxes/${inbox_id}`, { label });
  expect((await patch("🦊".repeat(100))).body.label).toBe("🦊".repeat(100));
  expect((await patch("")).body.label).toBe("");
  // Half of an emoji.
  expect((await patch("a\ud83e")).body.label).toBe("a\ufffd");
  for (const label of ["🦊".repeat(101), "x".repeat(101)]) {
    const answer = await patch(label);
    expect([answer.status, answer.body.errors[0]]).toMatchObject([
      422,
      { path: "body.label", code: "too_long" },
    ]);
    expect((await ada.post("/inboxes", { label })).status).toBe(422);
  }
});

test("a label of marks that pile up on one letter is refused at once", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const label = `a${"\u0315\u0300\u05ae".repeat(40_000)}`;
  const started = ownMs();
  for (const body of [{ label }, { label, prefix: "x" }])
    expect((await ada.post("/inboxes", body)).status).toBe(422);
  expect(ownMs() - started).toBeLessThan(2_000);
});

test("a label is one line", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const made = await ada.post("/inboxes", { label: " Q3\r\nBcc: eve@example.net\u0000\u2028" });
  expect(made.body.label).toBe("Q3 Bcc: eve@example.net");
  expect((await ada.post("/inboxes", { label: " \n " })).body.label).toBe("Inbox");
  const patched = await ada.patch(`/inboxes/${made.body.id}`, { label: "a\tb\n" });
  expect(patched.body.label).toBe("a b");
});

test("content is kept for one day to ten years, or as long as the server says", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const patch = (days: unknown): Promise<Answer> =>
    ada.patch(`/inboxes/${inbox_id}`, { retention_days: days });
  for (const days of [1, 3_650, null]) expect((await patch(days)).body.retention_days).toBe(days);
  for (const days of [0, -1, 3_651, 1.5, "7", [], true]) {
    const answer = await patch(days);
    expect([days, answer.status, answer.body.errors[0].path]).toEqual([days, 422, "body.retention_days"]);
  }
});

test("contexts of an inbox are the owner's own, each once; a fault names its place", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const patch = (context_ids: unknown): Promise<Answer> => ada.patch(`/inboxes/${inbox_id}`, { context_ids });
  const own = await contextOf(ada);
  const foreign = await contextOf(await t.as("bob@example.com"));
  expect((await patch([own, own])).body.context_ids).toEqual([own]);
  for (const id of [foreign, Bun.randomUUIDv7()]) {
    const answer = await patch([own, own, id]);
    expect([answer.status, answer.body.errors]).toEqual([
      422,
      [{ path: "body.context_ids.2", code: "context_not_found", message: "context not found" }],
    ]);
  }
  expect((await patch(["x"])).body.errors[0].path).toBe("body.context_ids.0");
  expect((await patch([])).body.context_ids).toEqual([]);
  expect((await patch(null)).body.context_ids).toBeNull();
});

test("an address is on a custom domain only if that is the owner's own and active", async () => {
  await using t = await testApp();
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const refused: [id: unknown, code: string][] = [
    [await customDomain(t, ada, "pending.example", "pending"), "domain_not_active"],
    [await customDomain(t, ada, "failed.example", "failed"), "domain_not_active"],
    [await customDomain(t, bob, "foreign.example", "active"), "domain_not_found"],
    [Bun.randomUUIDv7(), "domain_not_found"],
    ["own.example", "invalid_format"],
  ];
  for (const [domain_id, code] of refused) {
    const answer = await ada.post("/inboxes", { domain_id });
    expect([answer.status, answer.body.errors[0]]).toMatchObject([422, { path: "body.domain_id", code }]);
  }
  expect((await ada.get("/inboxes")).body).toEqual([]);
  const own = await customDomain(t, ada, "own.example", "active");
  const made = await ada.post("/inboxes", { domain_id: own, prefix: "desk" });
  expect(made.body.address).toMatch(/^desk-[a-z2-9]{12}@own\.example$/);
  // The address was given out: it stays.
  const moved = await ada.patch(`/inboxes/${made.body.id}`, { domain_id: null });
  expect(moved.body).toEqual({
    ...made.body,
    warnings: [expect.objectContaining({ path: "body.domain_id" })],
  });
});

test("an inbox is routed for as long as there is a model for it", async () => {
  await using t = await testApp();
  const { ada, inbox_id } = await deskOf(t);
  const routed = async () => (await ada.get("/inboxes")).body[0].routed;
  expect(await routed()).toBe(false);
  const { id } = (await ada.post("/connections", { kind: "demo" })).body;
  await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: id });
  expect(await routed()).toBe(true);
  await ada.delete(`/connections/${id}`);
  expect(await routed()).toBe(false);
  // A tool server is no model.
  const tools = await toolServer(ada, "Tools");
  expect((await ada.patch(`/inboxes/${inbox_id}`, { default_connection_id: tools })).status).toBe(422);
  await using other = await testApp({ llm: { kind: "demo" } });
  const desk = await deskOf(other);
  expect((await desk.ada.get("/inboxes")).body[0].routed).toBe(true);
});

async function toolServer(owner: Caller, label: string): Promise<string> {
  const { body } = await owner.post("/connections", {
    kind: "mcp",
    label,
    base_url: "https://tools.example/mcp",
  });
  return body.id;
}

async function contextOf(owner: Caller): Promise<string> {
  const { body } = await owner.post("/contexts", { title: "Brand", body: "Be kind.", kind: "instruction" });
  return body.id;
}

async function customDomain(
  t: TestApp,
  owner: Caller,
  domain: string,
  status: "pending" | "active" | "failed",
): Promise<string> {
  const id = Bun.randomUUIDv7();
  await t.app.db
    .insertInto("custom_domains")
    .values({
      id,
      user_id: owner.user.id,
      domain,
      status,
      ownership_token: "x",
      findings: "{}",
      error: null,
      misses: 0,
      verified_at: null,
      last_checked_at: null,
      created: t.app.now(),
    })
    .execute();
  return id;
}
