import { describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { canonicalJson } from "../../src/lib/canonical-json.ts";
import { sha256 } from "../../src/lib/sha256.ts";
import { type Answer, type Caller, type TestApp, testApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { deskOf, modelAt } from "./desk.ts";

const DEMO = { llm: { kind: "demo" as const } };

test("a retry with the same key gets the original result without a second run or charge", async () => {
  await using model = startModelServer();
  await using t = await testApp(modelAt(model));
  const { ada } = await deskOf(t);
  const first = await keyed(ada, "k1");
  expect(first.headers.get("idempotent-replayed")).toBe(null);
  const again = await keyed(ada, "k1");
  expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  expect(again.body).toEqual(first.body);
  expect(model.requests).toHaveLength(1);
  expect(await kindsOf(t)).toEqual(["grant", "reserve", "settle"]);
  // It costs nothing of the rate either.
  expect(again.headers.has("ratelimit")).toBe(false);
});

test("the same body in another order, with spaces around it or unknown members is the same body", async () => {
  await using t = await testApp(DEMO);
  const { ada, inbox_id } = await deskOf(t);
  const first = await keyed(ada, "k1", { instruction: "x", content: "y", inbox_id });
  for (const body of [
    { inbox_id, content: "y", instruction: "x" },
    { instruction: " x\n", content: "y", inbox_id, comment: "a retry" },
  ]) {
    const again = await keyed(ada, "k1", body);
    expect([again.status, again.body.message_id]).toEqual([200, first.body.message_id]);
  }
});

test("a key that was used with another body is refused with 422", async () => {
  await using t = await testApp(DEMO);
  const { ada, inbox_id } = await deskOf(t);
  await keyed(ada, "k1", { instruction: "x" });
  for (const body of [
    { instruction: "y" },
    { instruction: "x", content: "" },
    { instruction: "x", inbox_id },
    { instruction: "x", async: true },
    { instruction: "x", attachments: [] },
  ]) {
    const answer = await keyed(ada, "k1", body);
    expect([answer.status, answer.body.code]).toEqual([422, "idempotency_key_reuse"]);
  }
  expect((await ada.get("/messages")).body.items).toHaveLength(1);
});

test("keys of two accounts do not meet", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const { ada: bob } = await deskOf(t, "bob@example.com");
  const first = await keyed(ada, "k1");
  const second = await keyed(bob, "k1");
  expect([second.status, second.headers.get("idempotent-replayed")]).toEqual([200, null]);
  expect(second.body.message_id).not.toBe(first.body.message_id);
});

test("a key is 1 to 255 printable ASCII characters", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  for (const key of ["", "x".repeat(256), "ä", "a\tb", "\u{7f}"]) {
    const answer = await keyed(ada, key);
    expect([key, answer.status, answer.body.code]).toEqual([key, 422, "invalid_idempotency_key"]);
  }
  for (const key of ["k", "x".repeat(255), '"8e03978e-40d5"', "order 66: ~!"])
    expect([key, (await keyed(ada, key)).status]).toEqual([key, 200]);
});

test("ten duplicates at once make one run, one charge and ten equal answers", async () => {
  await using model = startModelServer({ fault: "slow", slow_ms: 50 });
  await using t = await testApp(modelAt(model, { plans: { team: { route_per_minute: 1 } } }));
  const { ada } = await deskOf(t);
  const answers = await Promise.all(Array.from({ length: 10 }, () => keyed(ada, "k1")));
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
  expect(new Set(answers.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  expect(answers.filter(({ headers }) => headers.has("idempotent-replayed"))).toHaveLength(9);
  expect(model.requests).toHaveLength(1);
  expect(await kindsOf(t)).toEqual(["grant", "reserve", "settle"]);
});

test("a duplicate of a run that takes too long gets 202 with the same id, and later the result", async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<string>();
  await using model = startModelServer({ reply: () => gate });
  await using t = await testApp(modelAt(model, { routing: { sync_budget_seconds: 0.05 } }));
  const { ada } = await deskOf(t);
  const first = await keyed(ada, "k1");
  const second = await keyed(ada, "k1");
  expect([first.status, second.status]).toEqual([202, 202]);
  expect(second.body.message_id).toBe(first.body.message_id);
  expect(second.headers.get("location")).toBe(`/v1/messages/${first.body.message_id}`);
  expect(second.headers.get("idempotent-replayed")).toBe("true");
  const ended = t.app.finished.wait(first.body.message_id, 5_000);
  open("At last.");
  expect(await ended).toBeTruthy();
  const third = await keyed(ada, "k1");
  expect([third.status, third.body.status, third.body.result]).toEqual([200, "done", "At last."]);
  expect(model.requests).toHaveLength(1);
});

test("a replay of an async call tells the current state at once", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const body = { instruction: "x", async: true };
  const first = await keyed(ada, "k1", body);
  const waiting = await keyed(ada, "k1", body);
  expect([first.status, waiting.status, waiting.body.status]).toEqual([202, 202, "processing"]);
  await t.drain();
  const done = await keyed(ada, "k1", body);
  expect([done.status, done.body.status, done.body.message_id]).toEqual([200, "done", first.body.message_id]);
});

test("a failed run is remembered: the retry gets the same failure", async () => {
  await using model = startModelServer({ fault: "unauthorized" });
  await using t = await testApp(modelAt(model));
  const { ada } = await deskOf(t);
  const first = await keyed(ada, "k1");
  model.fault = "none";
  const again = await keyed(ada, "k1");
  expect([again.status, again.body.status]).toEqual([200, "failed"]);
  expect(again.body).toEqual(first.body);
  expect(model.requests).toHaveLength(1);
});

test("nothing that was refused is remembered: 4xx, the rate and the credit limit leave the key free", async () => {
  await using t = await testApp({ ...DEMO, plans: { team: { credits: 1, route_per_minute: 3 } } });
  const { ada } = await deskOf(t);
  expect((await keyed(ada, "k1", { instruction: "" })).status).toBe(422);
  expect((await keyed(ada, "k1", { instruction: "x", inbox_id: Bun.randomUUIDv7() })).status).toBe(404);
  expect((await keyed(ada, "k1")).status).toBe(200);
  expect((await keyed(ada, "k2", { instruction: "limited" })).body.code).toBe("credit_limit");
  expect((await keyed(ada, "k2", { instruction: "other" })).body.code).toBe("credit_limit");
  expect((await keyed(ada, "k2", { instruction: "third" })).body.code).toBe("rate_limited");
  // The stored one is found before the rate is asked.
  expect((await keyed(ada, "k1")).status).toBe(200);
  // February has credits again.
  t.clock.advance("31d");
  const later = await keyed(ada, "k2", { instruction: "fourth" });
  expect([later.status, later.headers.get("idempotent-replayed")]).toEqual([200, null]);
});

test("a key is forgotten after 24 hours, not before", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const first = await keyed(ada, "k1");
  t.clock.advance("24h");
  const other = await keyed(ada, "k1", { instruction: "something else" });
  expect([other.status, other.headers.get("idempotent-replayed")]).toEqual([200, null]);
  expect(other.body.message_id).not.toBe(first.body.message_id);
  const replayed = await keyed(ada, "k1", { instruction: "something else" });
  expect(replayed.body.message_id).toBe(other.body.message_id);

  await using u = await testApp(DEMO);
  const { ada: ann } = await deskOf(u);
  await keyed(ann, "k1");
  u.clock.advance("86399s");
  expect((await keyed(ann, "k1")).headers.get("idempotent-replayed")).toBe("true");

  u.clock.advance("400ms");
  await keyed(ann, "k3");
  u.clock.advance("86399999ms");
  expect((await keyed(ann, "k3")).headers.get("idempotent-replayed")).toBe("true");
});

test("a key survives a restart of the server", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-keys-"));
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => rm(dir, { recursive: true, force: true }));
  const config = { ...DEMO, database: { url: `sqlite:${join(dir, "mail.db")}` } };
  let key = "";
  let first: Answer;
  {
    await using t = await testApp(config);
    const { ada } = await deskOf(t);
    key = ada.key;
    first = await keyed(ada, "k1");
  }
  await using t = await testApp(config);
  const again = await t.request("/v1/messages", {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json", "idempotency-key": "k1" },
    body: JSON.stringify({ instruction: "x" }),
  });
  expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  expect(again.body).toEqual(first.body);
  expect(await kindsOf(t)).toEqual(["grant", "reserve", "settle"]);
});

describe("a key from before an upgrade", () => {
  const FILE = { filename: "f.txt", content_type: "text/plain", data: btoa("words ".repeat(50)) };

  test.each([
    ["at once", {}],
    ["with a line break in its base64", { data: `${FILE.data.slice(0, 76)}\r\n${FILE.data.slice(76)}` }],
    // What earlier versions kept of a file's data cannot be compared, and a second run would be worse.
    ["whatever its files hold", { data: btoa("other words") }],
  ])("is known again with files %s: nothing is run or paid twice", async (_how, change) => {
    await using model = startModelServer();
    await using t = await testApp(modelAt(model));
    const { ada, inbox_id } = await deskOf(t);
    const body = { instruction: "x", inbox_id, attachments: [FILE] };
    const first = await keyed(ada, "k1", body);
    await asBefore(t, "k1", body);
    const again = await keyed(ada, "k1", { ...body, attachments: [{ ...FILE, ...change }] });
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
    expect(again.body).toEqual(first.body);
    expect(model.requests).toHaveLength(1);
    expect(await kindsOf(t)).toEqual(["grant", "reserve", "settle"]);
  });

  test("is known again with files while its call still runs", async () => {
    await using t = await testApp(DEMO);
    const { ada } = await deskOf(t);
    const body = { instruction: "x", attachments: [FILE], async: true };
    const first = await keyed(ada, "k1", body);
    await asBefore(t, "k1", body);
    const again = await keyed(ada, "k1", body);
    expect([again.status, again.body.message_id]).toEqual([202, first.body.message_id]);
  });

  test("is compared as ever without files", async () => {
    await using t = await testApp(DEMO);
    const { ada, inbox_id } = await deskOf(t);
    for (const [key, body] of Object.entries({
      k1: { instruction: "x", content: "y", inbox_id },
      k2: { instruction: "x", attachments: [] },
      k3: { instruction: "x", attachments: [FILE] },
    })) {
      const first = await keyed(ada, key, body);
      await asBefore(t, key, body);
      expect((await keyed(ada, key, body)).body).toEqual(first.body);
      const other = await keyed(ada, key, { instruction: "y" });
      expect([other.status, other.body.code]).toEqual([422, "idempotency_key_reuse"]);
    }
  });
});

test("a key with files is refused with other files, and known with the same in another base64", async () => {
  await using t = await testApp(DEMO);
  const { ada } = await deskOf(t);
  const withFile = (data: string) => ({
    instruction: "x",
    attachments: [{ filename: "f.txt", content_type: "text/plain", data }],
  });
  const first = await keyed(ada, "k1", withFile(btoa("one")));
  expect((await keyed(ada, "k1", withFile(` ${btoa("one")}\n`))).body).toEqual(first.body);
  expect((await keyed(ada, "k1", withFile(btoa("two")))).body.code).toBe("idempotency_key_reuse");
});

/** Has the row of a key say what earlier versions wrote: a hash of the call with the base64 of its files. */
async function asBefore({ app }: TestApp, key: string, body: object): Promise<void> {
  const fingerprint = sha256(canonicalJson(body), "hex");
  await app.db.updateTable("idempotency_keys").set({ fingerprint }).where("key", "=", key).execute();
}

function keyed(caller: Caller, key: string, body: object = { instruction: "x" }): Promise<Answer> {
  return caller.post("/v1/messages", body, { "idempotency-key": key });
}

async function kindsOf(t: TestApp): Promise<string[]> {
  const rows = await t.app.db.selectFrom("ledger").select("kind").orderBy("id").execute();
  return rows.map(({ kind }) => kind);
}
