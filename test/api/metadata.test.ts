import { expect, test } from "bun:test";
import { type Answer, type Caller, testApp } from "../support/app.ts";
import { startModelServer } from "../support/model-server.ts";
import { deskOf, modelAt } from "./desk.ts";

const MODEL = { llm: { kind: "demo" } } as const;

async function callsOf(ada: Caller) {
  await ada.post("/inboxes", {});
  return async (metadata: unknown, more: object = {}): Promise<Answer> =>
    ada.post("/v1/messages", { instruction: "Summarise", ...more, metadata });
}

test("metadata comes back with the call, its poll, the activity and the story, and no model reads it", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const call = await callsOf(ada);
  const metadata = { order: "4711", "team.name": "Ünï 😀", empty: "" };
  const { status, body } = await call(metadata, { content: "Eggs cost 3 francs." });
  expect([status, body.metadata]).toEqual([200, metadata]);
  expect(body.result).not.toContain("4711");
  for (const path of [`/v1/messages/${body.message_id}`, `/messages/${body.message_id}`])
    expect((await ada.get(path)).body.metadata).toEqual(metadata);
  expect((await ada.get("/messages")).body.items[0].metadata).toEqual(metadata);
  expect((await ada.post("/v1/messages", { instruction: "x" })).body.metadata).toEqual({});
});

test("what does not fit is refused at its place, and nothing is run or charged", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const call = await callsOf(ada);
  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
  for (const [metadata, path, code] of [
    [pairs(17), "body.metadata", "too_many"],
    [{ ["k".repeat(65)]: "v" }, "body.metadata", "invalid_key"],
    [{ "": "v" }, "body.metadata", "invalid_key"],
    [{ "a:b": "v" }, "body.metadata", "invalid_key"],
    [{ "a b": "v" }, "body.metadata", "invalid_key"],
    [{ order: "v".repeat(513) }, "body.metadata.order", "too_long"],
    [{ order: 4711 }, "body.metadata.order", "invalid"],
    [{ order: null }, "body.metadata.order", "invalid"],
    [{ order: { a: "b" } }, "body.metadata.order", "invalid"],
    ["order", "body.metadata", "invalid"],
    [["order"], "body.metadata", "invalid"],
    [null, "body.metadata", "invalid"],
  ] as const) {
    const answer = await call(metadata);
    expect([metadata, answer.status, answer.body.errors?.[0]?.path, answer.body.errors?.[0]?.code]).toEqual([
      metadata,
      422,
      path,
      code,
    ]);
  }
  expect((await ada.get("/messages")).body.items).toEqual([]);
  const most = Object.fromEntries(
    Array.from({ length: 16 }, (_, index) => [`${index}`.padStart(64, "k"), "😀".repeat(512)]),
  );
  expect((await call(most)).body.metadata).toEqual(most);
});

test("an Idempotency-Key stands for the metadata too", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  await callsOf(ada);
  const ask = (order: string) =>
    ada.post("/v1/messages", { instruction: "x", metadata: { order } }, { "idempotency-key": "k" });
  expect((await ask("1")).status).toBe(200);
  expect((await ask("1")).headers.get("idempotent-replayed")).toBe("true");
  expect((await ask("2")).body.code).toBe("idempotency_key_reuse");
});

test("the activity finds a pair, whole and exactly, page by page, and nobody else's", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const call = await callsOf(ada);
  await (
    await callsOf(bob)
  )({ order: "4711" });
  for (const metadata of [{ order: "4711" }, { order: "47" }, { order: "4711", a: "x:y" }, {}])
    await call(metadata);
  const find = async (pair: string, more = "") =>
    (await ada.get(`/messages?metadata=${encodeURIComponent(pair)}${more}`)).body;
  const orders = (page: { items: { metadata: object }[] }) => page.items.map(({ metadata }) => metadata);
  expect(orders(await find("order:4711"))).toEqual([{ order: "4711", a: "x:y" }, { order: "4711" }]);
  expect(orders(await find("a:x:y"))).toEqual([{ order: "4711", a: "x:y" }]);
  expect(orders(await find("order:4"))).toEqual([]);
  expect(orders(await find("toString:x"))).toEqual([]);
  const first = await find("order:4711", "&limit=1");
  expect(orders(first)).toEqual([{ order: "4711", a: "x:y" }]);
  expect(orders(await find("order:4711", `&limit=1&cursor=${first.next_cursor}`))).toEqual([
    { order: "4711" },
  ]);
  for (const wrong of ["", "order", ":4711", "a b:c"]) {
    const answer = await ada.get(`/messages?metadata=${encodeURIComponent(wrong)}`);
    expect([wrong, answer.status, answer.body.errors?.[0]?.path]).toEqual([wrong, 422, "query.metadata"]);
  }
});

test("a retry has the metadata of what it tries again", async () => {
  await using model = startModelServer({ reply: () => new Response("no", { status: 401 }) });
  await using t = await testApp(modelAt(model));
  const { ada } = await deskOf(t);
  const { body } = await ada.post("/v1/messages", { instruction: "x", metadata: { order: "1" } });
  expect(body.status).toBe("failed");
  expect((await ada.post(`/messages/${body.message_id}/retry`)).body.metadata).toEqual({ order: "1" });
});

test("metadata counts among what the account stores", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const call = await callsOf(ada);
  const stored = async (): Promise<number> => (await ada.get("/usage")).body.storage.bytes;
  const before = await stored();
  await call(undefined);
  const plain = (await stored()) - before;
  await call({ note: "n".repeat(500) });
  expect((await stored()) - before - 2 * plain).toBe(JSON.stringify({ note: "n".repeat(500) }).length);
});
