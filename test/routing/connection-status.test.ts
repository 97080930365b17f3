import { expect, test } from "bun:test";
import { startModelServer } from "../support/model-server.ts";
import { create, toolRoom } from "../support/tool-room.ts";
import { unfolded } from "../support/mails.ts";
import { freshId, mailroom, type Mailroom } from "../support/mailroom.ts";

async function statusOf(room: Mailroom) {
  const { body: items } = await room.owner.get("/connections");
  const { status, last_error } = items.find(({ kind }: { kind: string }) => kind === "openai_compatible");
  return { status, last_error };
}

/** A room whose inbox asks a model connection of its owner's. */
async function ownModelRoom(others: Record<string, unknown> = {}) {
  const room = await mailroom({ config: { egress: { allow: ["127.0.0.1"] } }, model: { models: ["m"] } });
  const model = { kind: "openai_compatible", base_url: room.model.base_url, model: "m", credential: "key" };
  const { body, status } = await room.owner.post("/connections", { ...model, ...others });
  expect(status).toBe(201);
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: body.id });
  return { ...room, connection: `/connections/${body.id}` };
}

async function run(room: Mailroom, text = "Hello"): Promise<string> {
  await room.send({ ...freshId(), text });
  for (let count = 0; count < 3; count += 1) {
    await room.drain();
    room.clock.advance("10s");
  }
  return (await room.newest()).state;
}

test("a connection shows that a message failed because of it, and that one was answered since", async () => {
  await using room = await ownModelRoom();
  expect(await run(room)).toBe("done");
  const before = await statusOf(room);
  expect(before).toMatchObject({ last_error: null });
  room.model.fault = "unauthorized";
  expect(await run(room)).toBe("failed");
  expect(await statusOf(room)).toEqual({
    status: "error",
    last_error: expect.stringContaining("did not accept the API key"),
  });
  room.model.fault = "none";
  expect(await run(room)).toBe("done");
  expect(await statusOf(room)).toEqual({ status: "ok", last_error: null });
});

test("a model that lists but answers nothing is shown so from the first message on, since when and why", async () => {
  await using room = await ownModelRoom();
  const read = async () => (await room.owner.get(room.connection)).body;
  const test = async () => (await room.owner.post(`${room.connection}/test`)).body;
  expect(await test()).toMatchObject({ ok: true, detail: "1 model visible" });
  expect((await read()).status).toBe("ok");
  room.model.fault = "html_502";
  room.clock.advance("1h");
  const since = room.app.now();
  await room.send({ ...freshId(), text: "Hello" });
  await room.drain();
  // It is tried again, and waits for that.
  expect((await room.newest()).state).toBe("received");
  const shown = {
    status: "error",
    last_error: expect.stringContaining("(502) has a fault of its own"),
    last_tested_at: since,
  };
  expect(await read()).toMatchObject(shown);
  room.clock.advance("10m");
  await room.drain();
  expect(await read()).toMatchObject(shown);
  room.model.fault = "none";
  room.clock.advance("1h");
  await room.drain();
  expect((await room.newest()).state).toBe("done");
  expect(await read()).toMatchObject({ status: "ok", last_error: null, last_tested_at: room.app.now() });
});

test("a mend and a test clear what messages have found, and a run from before the mend does not bring it back", async () => {
  await using room = await ownModelRoom();
  room.model.fault = "null_content";
  await run(room);
  expect(await statusOf(room)).toMatchObject({ status: "error" });
  room.model.fault = "hang";
  await room.send({ ...freshId(), text: "Hello again" });
  const asked = room.model.requests.length + 1;
  const draining = room.drain();
  await room.model.received(asked);
  await using mended = startModelServer({ models: ["m"] });
  await room.owner.patch(room.connection, { base_url: mended.base_url, credential: "key" });
  expect(await statusOf(room)).toEqual({ status: "untested", last_error: null });
  expect((await room.owner.post(`${room.connection}/test`)).body.ok).toBe(true);
  await room.model[Symbol.asyncDispose]();
  await draining;
  expect(await statusOf(room)).toEqual({ status: "ok", last_error: null });
});

test("a tool server that cannot be reached is nothing against the model", async () => {
  await using room = await ownModelRoom();
  await using gone = startModelServer();
  const calendar = { kind: "mcp", label: "calendar", base_url: `${new URL(gone.base_url).origin}/mcp` };
  const { body } = await room.owner.post("/connections", calendar);
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { mcp_connection_ids: [body.id] });
  await gone[Symbol.asyncDispose]();
  expect(await run(room, "@calendar Make an event")).toBe("failed");
  expect((await room.newest()).reason).toBe("unreachable");
  expect(await statusOf(room)).toEqual({ status: "untested", last_error: null });
});

test("a first answer is as good as a test", async () => {
  await using room = await ownModelRoom();
  expect(await statusOf(room)).toEqual({ status: "untested", last_error: null });
  expect(await run(room)).toBe("done");
  expect(await statusOf(room)).toEqual({ status: "ok", last_error: null });
});

test("a connection whose fallback answers in its place shows that it does not answer itself", async () => {
  await using other = startModelServer({ reply: () => "From the spare one" });
  await using room = await ownModelRoom();
  const spare = { kind: "groq", base_url: other.base_url, model: "s", credential: "key", label: "Spare" };
  const { body } = await room.owner.post("/connections", spare);
  await room.owner.patch(room.connection, { fallback_connection_ids: [body.id] });
  room.model.fault = "html_502";
  expect(await run(room)).toBe("done");
  expect(await statusOf(room)).toMatchObject({ status: "error" });
  expect((await room.owner.get(`/connections/${body.id}`)).body.status).toBe("ok");
  room.model.fault = "none";
  expect(await run(room)).toBe("done");
  expect(await statusOf(room)).toEqual({ status: "ok", last_error: null });
});

test("a model that a rule asks, and that does not answer, is shown so as well", async () => {
  await using room = await ownModelRoom();
  const rules = [{ name: "Bills", when: [], question: "Is it a bill?", do: { tags: ["bill"] } }];
  expect((await room.owner.patch(`/inboxes/${room.inbox.id}`, { rules })).status).toBe(200);
  room.model.fault = "html_502";
  await room.send({ ...freshId(), text: "Hello" });
  await room.drain();
  expect(await statusOf(room)).toMatchObject({ status: "error" });
});

test.each(["content_filter", "huge"] as const)(
  "a connection shows nothing of a failure that lies in what was asked (%s)",
  async (fault) => {
    await using room = await ownModelRoom();
    expect(await run(room)).toBe("done");
    const before = await statusOf(room);
    room.model.fault = fault;
    expect(await run(room)).toBe("failed");
    expect(await statusOf(room)).toEqual(before);
  },
);

test("a connection shows nothing of what a message alone brought about", async () => {
  await using room = await ownModelRoom();
  const before = await statusOf(room);
  room.model.fault = "unknown_model";
  expect(await run(room, "--model=nope Hello")).toBe("failed");
  expect(await statusOf(room)).toEqual(before);
});

test("a tool server that is down is told to the sender, whatever the model says", async () => {
  await using room = await toolRoom([
    [create({ title: "Lunch" })],
    "All done!",
    [create({ title: "Lunch" })],
    "All done!",
  ]);
  await run(room, "@calendar Make an event");
  expect(room.tools.calls).toHaveLength(1);
  await room.tools[Symbol.asyncDispose]();
  expect(await run(room, "@calendar Make one more")).toBe("done");
  const answer = (await room.outgoing()).at(-1);
  expect((await room.newest()).steps).toContain("mcp:calendar create_event was not done");
  expect(unfolded(String(answer?.raw).replaceAll("=\r\n", ""))).toContain("create_event was not done");
});
