import { describe, expect, test } from "bun:test";
import { createHttp } from "../../src/api.ts";
import { descriptionOf } from "../../src/http/describe.ts";
import { type Answer, type Caller, testApp, type TestApp } from "../support/app.ts";

const MODEL = { llm: { kind: "demo" } } as const;
const STRICT = { "mailwright-strict": "1" };
const unknown = (path: string, did_you_mean: string | null = null) => ({
  path,
  code: "unknown_member",
  did_you_mean,
});

function said({ status, headers, body }: Answer) {
  return { status, count: headers.get("mailwright-warnings"), warnings: body?.warnings };
}

/** A request with a body of its own and headers. */
function send(t: TestApp, ada: Caller, [method, path, body]: [string, string, unknown], headers = {}) {
  const json = body === undefined ? {} : { "content-type": "application/json" };
  return t.request(path, {
    method,
    headers: { "x-api-key": ada.key, ...json, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

describe("members that nobody looks at", () => {
  test("are named in the answer, with what they may be a slip for", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const inbox = await ada.post("/inboxes", { name: "Billing", colour: "red" });
    expect(said(inbox)).toEqual({
      status: 201,
      count: "2",
      warnings: [unknown("body.name", "label"), unknown("body.colour")],
    });
    const call = await ada.post("/v1/messages", { instruction: "Sum up", conten: "x" });
    expect(said(call)).toEqual({ status: 200, count: "1", warnings: [unknown("body.conten", "content")] });
    const patched = await ada.patch(`/inboxes/${inbox.body.id}`, { enabled: false });
    expect(said(patched)).toEqual({ status: 200, count: "1", warnings: [unknown("body.enabled")] });
    const clean = await ada.patch(`/inboxes/${inbox.body.id}`, { label: "Desk" });
    expect(said(clean)).toEqual({ status: 200, count: null, warnings: undefined });
  });

  test("are found inside of objects and lists, and never among names that their sender chooses", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const inbox = await ada.post("/inboxes", {
      scope: { targets: ["notes"], target: 1 },
      inbound_policy: { process_bulks: true },
      allowlist: ["bob@client.example"],
      rules: [{ name: "Tagged", when: {}, do: { tag: ["x"] } }],
    });
    expect(inbox.body.warnings).toEqual([
      unknown("body.scope.target", "targets"),
      unknown("body.inbound_policy.process_bulks", "process_bulk"),
      unknown("body.allowlist", "allowlist_senders"),
      unknown("body.rules.0.do.tag", "tags"),
    ]);
    const file = { filename: "a.txt", content_type: "text/plain", data: "eA==", name: "a" };
    const call = await ada.post("/v1/messages", {
      instruction: "x",
      attachments: [file],
      metadata: { anything: "goes" },
    });
    expect(call.body.warnings).toEqual([unknown("body.attachments.0.name", "filename")]);
    const connection = await ada.post("/connections", {
      kind: "openai_compatible",
      base_url: "https://model.example.com/v1",
      headers: { "x-team": "a" },
      config: { anything: { goes: 1 } },
      modell: "m",
    });
    expect(connection.body.warnings).toEqual([unknown("body.modell", "model")]);
  });

  test("stand beside the faults of a body that is refused", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const answer = await ada.post("/v1/messages", { instructions: "x" });
    expect(said(answer)).toEqual({
      status: 422,
      count: "1",
      warnings: [unknown("body.instructions", "instruction")],
    });
    expect(answer.body.errors).toMatchObject([{ path: "body.instruction", code: "missing" }]);
  });

  test("of a route that takes none, or may do without, are named too", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    expect((await ada.post("/recipes/translate/apply", { label: "Mine" })).body.warnings).toEqual([
      unknown("body.label"),
    ]);
    const [inbox] = (await ada.get("/inboxes")).body;
    const run = await ada.post(`/inboxes/${inbox.id}/test`, { contents: "x" });
    expect(said(run)).toEqual({ status: 200, count: "1", warnings: [unknown("body.contents", "content")] });
    expect(said(await ada.post(`/inboxes/${inbox.id}/test`)).count).toBeNull();
  });

  test("leave an answer that is a list, or none, with the header alone", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const { body: inbox } = await ada.post("/inboxes", {});
    const list = await ada.get("/inboxes?colour=red");
    expect([list.status, Array.isArray(list.body), list.headers.get("mailwright-warnings")]).toEqual([
      200,
      true,
      "1",
    ]);
    const gone = await send(t, ada, ["DELETE", `/inboxes/${inbox.id}`, { why: "x" }]);
    expect([gone.status, gone.body, gone.headers.get("mailwright-warnings")]).toEqual([204, "", "1"]);
  });

  test("of a long body, which a thread reads, and of a form are named as well", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    await ada.post("/inboxes", {});
    const long = { instruction: "x", content: "y".repeat(300_000), contexts: ["a"] };
    expect((await ada.post("/v1/messages", long)).body.warnings).toEqual([
      unknown("body.contexts", "content"),
    ]);
    const body = new FormData();
    body.set("file", new File(["# Tone"], "tone.md"));
    body.set("titel", "Tone");
    const headers = { "x-api-key": ada.key };
    const made = await t.request("/contexts/upload", { method: "POST", headers, body });
    expect(said(made)).toEqual({ status: 201, count: "1", warnings: [unknown("body.titel")] });
    const refused = await t.request("/contexts/upload", {
      method: "POST",
      headers: { ...headers, ...STRICT },
      body,
    });
    expect(refused.status).toBe(422);
    expect((await ada.get("/contexts")).body).toHaveLength(1);
  });

  test("of a query are named as well", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const page = await ada.get("/messages?limt=5&status=done&limt=6");
    expect(said(page)).toEqual({ status: 200, count: "1", warnings: [unknown("query.limt", "limit")] });
    expect(said(await ada.get("/auth/me?x")).warnings).toEqual([unknown("query.x")]);
    expect((await t.request("/auth/me?x")).status).toBe(401);
  });

  test("come again with the answer to a retry", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    await ada.post("/inboxes", {});
    const ask = () =>
      ada.post("/v1/messages", { instruction: "x", conten: "y" }, { "idempotency-key": "one" });
    const [first, again] = [await ask(), await ask()];
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    expect(again.body.warnings).toHaveLength(1);
  });

  test("are counted all and listed twenty, each with a short name", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const many = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, index) => [`${"n".repeat(150)}${index}`, 1]),
    );
    const answer = await ada.post("/inboxes", many);
    expect(answer.headers.get("mailwright-warnings")).toBe("5000");
    expect(answer.body.warnings).toHaveLength(20);
    expect(answer.body.warnings[0].path).toBe(`body.${"n".repeat(100)}`);
  });

  test("of one request are not told to another", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        ada.post("/inboxes", index % 2 === 0 ? { label: "Right" } : { name: "Wrong" }),
      ),
    );
    expect(answers.map(({ body }) => body.warnings?.length ?? 0)).toEqual(
      answers.map((_, index) => index % 2),
    );
  });
});

describe("with Mailwright-Strict: 1", () => {
  test("unknown members are refused before anything is done, with all other faults", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const answer = await ada.post("/inboxes", { name: "Billing" }, STRICT);
    expect([answer.status, answer.body.code, answer.body.errors]).toEqual([
      422,
      "validation_error",
      [
        {
          path: "body.name",
          code: "unknown_member",
          message: "is not known here (did you mean label?)",
        },
      ],
    ]);
    expect(said(answer)).toMatchObject({ count: null, warnings: undefined });
    expect((await ada.get("/inboxes")).body).toEqual([]);
    const two = await ada.post("/inboxes", { name: "Billing", reply_enabled: "yes" }, STRICT);
    expect(two.body.errors.map(({ path }: { path: string }) => path)).toEqual([
      "body.reply_enabled",
      "body.name",
    ]);
    const call = await ada.post("/v1/messages", { instruction: "x", conten: "y" }, STRICT);
    expect([call.status, (await ada.get("/messages")).body.items]).toEqual([422, []]);
    expect((await ada.get("/messages?limt=5", STRICT)).status).toBe(422);
  });

  test("what is right is done, and a credential is asked for first", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    expect((await ada.post("/inboxes", { label: "Desk" }, STRICT)).status).toBe(201);
    expect((await ada.get("/messages?limit=5", STRICT)).status).toBe(200);
    const stranger = await t.request("/inboxes", {
      method: "POST",
      headers: { ...STRICT, "content-type": "application/json" },
      body: '{"name": "x"}',
    });
    expect([stranger.status, stranger.body.errors]).toEqual([401, undefined]);
    const off = await ada.post("/inboxes", { name: "x" }, { "mailwright-strict": "0" });
    expect([off.status, off.headers.get("mailwright-warnings")]).toEqual([201, "1"]);
  });

  test("every route of the interface with a body of JSON refuses a member that it does not know", async () => {
    await using t = await testApp(MODEL);
    const ada = await t.as("ada@example.com");
    const { routes } = createHttp(t.app, { ready: async () => ({}) });
    const told: string[] = [];
    for (const { method, path, hooks } of routes) {
      const about = descriptionOf(hooks.detail);
      if (!about || about.form || about.bytes_body || ["GET", "HEAD"].includes(method)) continue;
      // Neither of these is JSON, and nothing that comes along keeps anybody from signing out.
      if (["/billing/webhook", "/contexts/upload", "/auth/logout"].includes(path)) continue;
      const at = path.replaceAll(/:(\w+)/g, () => Bun.randomUUIDv7());
      const { status, body } = await send(t, ada, [method, at, { zzzz: 1 }], STRICT);
      const found = body?.errors?.some(({ path: where }: { path: string }) => where === "body.zzzz");
      // What only a session may do, or nobody without a key of another kind, is refused for that.
      if (!found && status !== 403) told.push(`${method} ${path} ${status}`);
    }
    expect(told).toEqual([]);
  });
});
