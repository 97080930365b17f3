import { expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { type Answer, type Caller, testApp } from "../support/app.ts";

const MODEL = { llm: { kind: "demo" } } as const;

/** The inbox that a call ran through which names none. */
async function ranThrough(ada: Caller, more: object = {}): Promise<string | [number, string]> {
  const answer = await ada.post("/v1/messages", { instruction: "x", ...more });
  if (answer.status !== 200) return [answer.status, answer.body.code];
  return (await ada.get(`/messages/${answer.body.message_id}`)).body.inbox_id;
}

async function inboxesOf(ada: Caller, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let made = 0; made < count; made += 1) ids.push((await ada.post("/inboxes", {})).body.id);
  return ids;
}

async function defaultsOf(ada: Caller): Promise<boolean[]> {
  return (await ada.get("/inboxes")).body.map(({ is_default }: { is_default: boolean }) => is_default);
}

test("calls that name no inbox go to the first, also once there are more, and to another that is made the default", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  expect(await ranThrough(ada)).toEqual([422, "inbox_required"]);
  const [first, second] = await inboxesOf(ada, 2);
  expect(await ranThrough(ada)).toBe(first as string);
  expect(await defaultsOf(ada)).toEqual([true, false]);
  const { status, body } = await ada.patch(`/inboxes/${second}`, { is_default: true });
  expect([status, body.is_default]).toEqual([200, true]);
  expect(await defaultsOf(ada)).toEqual([false, true]);
  expect(await ranThrough(ada)).toBe(second as string);
  expect(await ranThrough(ada, { inbox_id: first })).toBe(first as string);
  expect((await ada.patch(`/inboxes/${second}`, { label: "Desk" })).body.is_default).toBe(true);
  expect((await ada.get(`/inboxes/${first}`)).body.is_default).toBe(false);
  expect((await ada.post(`/inboxes/${second}/rotate`)).body.is_default).toBe(true);
});

test("a new inbox can be the default at once", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  await inboxesOf(ada, 1);
  expect((await ada.post("/inboxes", { is_default: false })).body.is_default).toBe(false);
  const { body } = await ada.post("/inboxes", { is_default: true });
  expect(body.is_default).toBe(true);
  expect(await ranThrough(ada)).toBe(body.id);
});

test("there is always one: it cannot be taken away, only given to another one", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const bob = await t.as("bob@example.com");
  const [first, second] = await inboxesOf(ada, 2);
  const [foreign] = await inboxesOf(bob, 1);
  const patch = (id: unknown, is_default: unknown): Promise<Answer> =>
    ada.patch(`/inboxes/${String(id)}`, { is_default });
  const answer = await patch(first, false);
  expect([answer.status, answer.body.errors]).toMatchObject([
    422,
    [{ path: "body.is_default", code: "needs_another" }],
  ]);
  expect((await patch(second, false)).status).toBe(200);
  for (const wrong of [null, "true", 1]) expect((await patch(second, wrong)).status).toBe(422);
  expect((await patch(foreign, true)).status).toBe(404);
  expect(await defaultsOf(ada)).toEqual([true, false]);
  expect(await defaultsOf(bob)).toEqual([true]);
});

test("when it is deleted the oldest of the others takes its place", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const [first, second, third] = await inboxesOf(ada, 3);
  await ada.patch(`/inboxes/${third}`, { is_default: true });
  await ada.delete(`/inboxes/${third}`);
  expect(await ranThrough(ada)).toBe(first as string);
  await ada.delete(`/inboxes/${first}`);
  expect(await ranThrough(ada)).toBe(second as string);
  expect(await defaultsOf(ada)).toEqual([true]);
});

test("one that rests beyond the plan says so, and another can be made the default", async () => {
  await using t = await testApp({ ...MODEL, plans: { free: { inboxes: 1 } } });
  const ada = await t.as("ada@example.com");
  const [first, second, third] = await inboxesOf(ada, 3);
  await ada.patch(`/inboxes/${second}`, { is_default: true });
  await setPlan(t.app, { email: "ada@example.com", plan: "free" });
  const refused = await ada.post("/v1/messages", { instruction: "x" });
  expect([refused.status, refused.body.code, refused.body.fix]).toEqual([
    403,
    "plan_limit_reached",
    expect.stringContaining('"is_default": true'),
  ]);
  expect((await ada.patch(`/inboxes/${third}`, { is_default: true })).status).toBe(403);
  expect(await ranThrough(ada, { inbox_id: first })).toBe(first as string);
  expect((await ada.patch(`/inboxes/${first}`, { is_default: true })).status).toBe(200);
  expect(await ranThrough(ada)).toBe(first as string);
});

test("a conversation goes on in its own inbox, whichever is the default by now", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const [first, second] = await inboxesOf(ada, 2);
  const { conversation_id } = (await ada.post("/v1/messages", { instruction: "one" })).body;
  await ada.patch(`/inboxes/${second}`, { is_default: true });
  expect(await ranThrough(ada, { conversation_id })).toBe(first as string);
  expect(await ranThrough(ada, { conversation_id: Bun.randomUUIDv7() })).toEqual([404, "not_found"]);
});

test("a retry by key gives the first answer, whatever has become the default since", async () => {
  await using t = await testApp(MODEL);
  const ada = await t.as("ada@example.com");
  const [, second] = await inboxesOf(ada, 2);
  const ask = () => ada.post("/v1/messages", { instruction: "one" }, { "idempotency-key": "k" });
  const one = await ask();
  await ada.patch(`/inboxes/${second}`, { is_default: true });
  const two = await ask();
  expect(two.headers.get("idempotent-replayed")).toBe("true");
  expect(two.body.message_id).toBe(one.body.message_id);
});
