import { expect, test } from "bun:test";
import { create, toolRoom } from "../support/tool-room.ts";
import { unfolded } from "../support/mails.ts";
import { freshId, mailroom, type Mailroom } from "../support/mailroom.ts";

async function statusOf(room: Mailroom) {
  const { body: items } = await room.owner.get("/connections");
  const { status, last_error } = items.find(({ kind }: { kind: string }) => kind === "openai_compatible");
  return { status, last_error };
}

/** A room whose inbox asks a model connection of its owner's. */
async function ownModelRoom(): Promise<Mailroom> {
  const room = await mailroom({ config: { egress: { allow: ["127.0.0.1"] } } });
  const model = { kind: "openai_compatible", base_url: room.model.base_url, model: "m", credential: "key" };
  const { body, status } = await room.owner.post("/connections", model);
  expect(status).toBe(201);
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { default_connection_id: body.id });
  return room;
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
