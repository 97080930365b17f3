import { expect, test } from "bun:test";
import { createApiKey, revokeApiKeyOf } from "../../src/resources/accounts/api-keys.ts";
import { approvalRoom, letters, pressYes } from "../approvals/room.ts";
import type { Answer, TestApp } from "../support/app.ts";
import { sessionOf } from "../support/consent.ts";
import { create, CREATE, EVENTS, list, type Round, toolRoom, type ToolRoom } from "../support/tool-room.ts";

const EMAIL = "ada@example.com";
type Send = (method: string, path: string, body?: unknown) => Promise<Answer>;

/** Another key of the owner's, which can be revoked while theirs stays. */
async function secondKey({
  app,
  request,
}: TestApp): Promise<{ id: string; send: Send; revoke: () => Promise<unknown> }> {
  const { id, key } = await createApiKey(app, { email: EMAIL, name: "leaked" });
  return {
    id,
    send: as(request, { "x-api-key": key }),
    revoke: () => revokeApiKeyOf(app, { email: EMAIL, key: id }),
  };
}

async function browserOf(room: ToolRoom): Promise<Send> {
  return as(room.request, { cookie: await sessionOf(room, room.owner) });
}

function as(request: TestApp["request"], credential: Record<string, string>): Send {
  return (method, path, body) =>
    request(path, {
      method,
      headers: { ...credential, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
}

const ORDER = { instruction: "@calendar Make an event." };
const REVOKED = { status: "failed", reason: "key_revoked", credits_charged: 0 };
const calls = (room: ToolRoom): string[] => room.tools.calls.map(({ name }) => name);

test("calls that wait end with the key that they came with, and cost nothing", async () => {
  await using room = await toolRoom([[create()], "Done."]);
  const leaked = await secondKey(room);
  const ids: string[] = [];
  for (let n = 0; n < 3; n += 1)
    ids.push((await leaked.send("POST", "/v1/messages", { ...ORDER, async: true })).body.message_id);
  await leaked.revoke();
  await room.drain();
  expect(calls(room)).toEqual([]);
  expect(room.model.requests.length).toBe(0);
  for (const id of ids) {
    const { body } = await room.owner.get(`/messages/${id}`);
    expect(body).toMatchObject(REVOKED);
    expect(body.error).toContain("revoked");
  }
  expect((await room.owner.get("/auth/me")).body.credits.used).toBe(0);
});

test("a call of a key that stays, and of a browser, goes on when another key is revoked", async () => {
  const rounds: Round[] = [[create()], "Done.", [create({ title: "Dinner" })], "Done."];
  await using room = await toolRoom(rounds);
  const leaked = await secondKey(room);
  const browser = await browserOf(room);
  await room.owner.post("/v1/messages", { ...ORDER, async: true });
  await browser("POST", "/v1/messages", { ...ORDER, async: true });
  await leaked.revoke();
  await room.drain();
  expect(calls(room)).toEqual(["create_event", "create_event"]);
});

test.each(["create_event", "list_events"])(
  "a call in hand calls %s no more once its key is revoked, and its answer is told to nobody",
  async (name) => {
    let revoke: () => Promise<unknown> = async () => undefined;
    await using room = await toolRoom([
      async () => {
        await revoke();
        return name === "create_event" ? [create()] : [list()];
      },
      "The secret of the house.",
    ]);
    const leaked = await secondKey(room);
    revoke = leaked.revoke;
    const sent = leaked.send("POST", "/v1/messages", ORDER);
    await room.drain();
    const { status, body } = await sent;
    expect(status).toBe(200);
    expect(body).toMatchObject({ status: "failed", error: expect.stringContaining("revoked") });
    expect(JSON.stringify(body)).not.toContain("secret of the house");
    expect(calls(room)).toEqual([]);
    expect(await room.newest()).toMatchObject({
      state: "failed",
      reason: "key_revoked",
      result: "",
      credits_charged: 0,
    });
    expect((await room.owner.get("/auth/me")).body.credits.used).toBe(0);
  },
);

test("a key that is revoked between two calls of a run has made the first alone", async () => {
  let revoke: () => Promise<unknown> = async () => undefined;
  await using room = await toolRoom([
    [create()],
    async () => {
      await revoke();
      return [create({ title: "Another" })];
    },
    "Done.",
  ]);
  const leaked = await secondKey(room);
  revoke = leaked.revoke;
  const sent = leaked.send("POST", "/v1/messages", ORDER);
  await room.drain();
  await sent;
  expect(room.tools.calls.map(({ args }) => args)).toEqual([{ title: "Lunch" }]);
  expect(await room.newest()).toMatchObject({ state: "failed", reason: "key_revoked" });
});

test("whoever tries a call again answers for it: a browser has it done, another key until it is revoked", async () => {
  await using room = await toolRoom([[create()], "Done."]);
  const leaked = await secondKey(room);
  const other = await secondKey(room);
  const browser = await browserOf(room);
  const { body: call } = await leaked.send("POST", "/v1/messages", { ...ORDER, async: true });
  await leaked.revoke();
  await room.drain();
  const again = await other.send("POST", `/messages/${call.message_id}/retry`);
  expect(again.status).toBe(202);
  await other.revoke();
  await room.drain();
  expect(calls(room)).toEqual([]);
  expect((await room.owner.get(`/messages/${again.body.message_id}`)).body).toMatchObject(REVOKED);
  expect((await browser("POST", `/messages/${call.message_id}/retry`)).status).toBe(202);
  await room.drain();
  expect(calls(room)).toEqual(["create_event"]);
});

test("a mail of the owner's that a key has tried again ends with the key", async () => {
  await using room = await toolRoom([new Response("no", { status: 401 }), [create()], "Done."]);
  const leaked = await secondKey(room);
  await room.send({ subject: "x", text: "@calendar Make an event." });
  await room.drain();
  const failed = await room.newest();
  expect(failed.state).toBe("failed");
  const again = await leaked.send("POST", `/messages/${failed.id}/retry`);
  expect(again.status).toBe(202);
  await leaked.revoke();
  await room.drain();
  expect(calls(room)).toEqual([]);
  expect((await room.owner.get(`/messages/${again.body.message_id}`)).body).toMatchObject(REVOKED);
});

test.each([
  ["POST /v1/schedules", (send: Send) => send("POST", "/v1/schedules", { ...ORDER, every: "daily at 9:00" })],
  [
    "a call",
    (send: Send) =>
      send("POST", "/v1/messages", { instruction: '@calendar --every="daily at 9:00" Make an event.' }),
  ],
])(
  "a schedule that a key has made by %s pauses when it is revoked, and goes on as whose it then is",
  async (_name, make) => {
    await using room = await toolRoom([[create()], "Done.", [create()], "Done.", [create()], "Done."]);
    const leaked = await secondKey(room);
    const made = make(leaked.send);
    await room.drain();
    expect((await made).status).toBeLessThan(300);
    const [{ id }] = (await room.owner.get("/v1/schedules")).body;
    room.clock.advance("24h");
    await room.drain();
    expect(calls(room)).toEqual(["create_event"]);
    await leaked.revoke();
    const before = (await room.outgoing()).length;
    room.clock.advance("24h");
    await room.drain();
    expect(calls(room)).toEqual(["create_event"]);
    const paused = (await room.owner.get(`/v1/schedules/${id}`)).body;
    expect(paused).toMatchObject({ status: "paused", reason: expect.stringContaining("API key") });
    const told = (await room.outgoing()).slice(before).map(({ raw }) => Buffer.from(raw ?? "").toString());
    expect(told.filter((raw) => raw.includes("API key"))).not.toEqual([]);
    expect((await room.owner.post(`/v1/schedules/${id}/run`)).status).toBe(409);
    const browser = await browserOf(room);
    expect((await browser("PATCH", `/v1/schedules/${id}`, { paused: false })).body.status).toBe("active");
    room.clock.advance("24h");
    await room.drain();
    expect(calls(room)).toEqual(["create_event", "create_event"]);
  },
);

test("a schedule of the owner's that a key has run at once ends that run with the key, and stays the owner's", async () => {
  await using room = await toolRoom([[create()], "Done."]);
  const leaked = await secondKey(room);
  const browser = await browserOf(room);
  const { body: schedule } = await browser("POST", "/v1/schedules", { ...ORDER, every: "daily at 9:00" });
  expect((await leaked.send("POST", `/v1/schedules/${schedule.id}/run`)).status).toBe(202);
  await leaked.revoke();
  await room.drain();
  expect(calls(room)).toEqual([]);
  room.clock.advance("24h");
  await room.drain();
  expect(calls(room)).toEqual(["create_event"]);
  expect((await room.owner.get(`/v1/schedules/${schedule.id}`)).body.status).toBe("active");
});

test("another instruction by a key makes a schedule the key's", async () => {
  await using room = await toolRoom([[create()], "Done."]);
  const leaked = await secondKey(room);
  const browser = await browserOf(room);
  const { body: schedule } = await browser("POST", "/v1/schedules", { ...ORDER, every: "daily at 9:00" });
  await leaked.send("PATCH", `/v1/schedules/${schedule.id}`, { instruction: "@calendar Make another." });
  await leaked.revoke();
  room.clock.advance("24h");
  await room.drain();
  expect(calls(room)).toEqual([]);
  expect((await room.owner.get(`/v1/schedules/${schedule.id}`)).body.status).toBe("paused");
});

test("a call that waits for a yes is not made once the key that wanted it is revoked", async () => {
  await using room = await approvalRoom({ served: [EVENTS, CREATE] });
  const leaked = await secondKey(room);
  room.rounds.push([create()], "It waits.");
  const sent = leaked.send("POST", "/v1/messages", { instruction: "@calendar --ask Make an event." });
  await room.drain();
  await sent;
  expect((await letters(room)).length).toBe(1);
  await leaked.revoke();
  const { body } = await room.owner.get("/v1/approvals");
  expect((await pressYes(room, body.items[0])).status).toBe(202);
  await room.drain();
  expect(calls(room)).toEqual([]);
  expect(JSON.stringify(await room.newest())).toContain("API key that wanted it has been revoked");
});

test("a test of an inbox knows its key", async () => {
  await using room = await toolRoom(["Fine."]);
  const leaked = await secondKey(room);
  const sent = leaked.send("POST", `/inboxes/${room.inbox.id}/test`, {});
  await room.drain();
  expect((await sent).status).toBe(200);
  expect((await room.newest()).key_id).toBe(leaked.id);
});
