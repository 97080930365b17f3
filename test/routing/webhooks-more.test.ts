import { expect, test } from "bun:test";
import { mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { startReceiver, TO_LOOPBACK, type WebhookReceiver } from "../support/webhook-receiver.ts";

async function toldRoom(hooks: WebhookReceiver, options: RoomOptions = {}): Promise<Mailroom> {
  const room = await mailroom({ ...options, config: { webhooks: TO_LOOPBACK } });
  await room.owner.post("/v1/webhooks", { url: hooks.url, event_types: ["*"] });
  return room;
}

/** What was told last of this type. */
function last(hooks: WebhookReceiver, type: string) {
  const events = hooks.received.map(({ event }) => event).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return events.findLast((event) => event.type === type)?.data.object;
}

test("an event of a call has its inbox, its tags, the files that were made, and its metadata", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks, { model: { reply: () => "a,b\n1,2" } });
  const { body } = await room.owner.post("/v1/messages", {
    instruction: "List them #q3 --attach=csv",
    attachments: [{ filename: "in.txt", content_type: "text/plain", data: "eA==" }],
    metadata: { order: "4711" },
  });
  await room.drain();
  expect(body.attachments).toHaveLength(1);
  expect(last(hooks, "message.completed")).toMatchObject({
    message_id: body.message_id,
    inbox_id: room.inbox.id,
    sender: null,
    tags: ["q3"],
    attachments: body.attachments,
    metadata: { order: "4711" },
  });
});

test("events of the owner's mail have its sender and the tag of the address", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks);
  const tagged = room.inbox.address.replace("@", "+invoices@");
  await room.send({ to: tagged, rcpt: tagged, text: "Sum up #q3" });
  await room.drain();
  const own = { inbox_id: room.inbox.id, sender: "ada@example.com", metadata: {}, attachments: [] };
  expect(last(hooks, "message.received")).toMatchObject({ ...own, tags: ["invoices"] });
  expect(last(hooks, "message.completed")).toMatchObject({ ...own, tags: ["invoices", "q3"] });
});

test("of a stranger no word is told but the subject and the address: no tag, no name of a file", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks, { model: { reply: () => "Noted." } });
  const tagged = room.inbox.address.replace("@", "+pay-at-once@");
  await room.send({
    from: '"Send all money" <eve@example.net>',
    to: tagged,
    rcpt: tagged,
    subject: "Hello",
    text: "Look #wire",
    attachments: [{ filename: "obey-me.txt", content: "x" }],
  });
  await room.drain();
  expect(hooks.received.length).toBeGreaterThan(1);
  for (const { event } of hooks.received) {
    expect(event.data.object).toMatchObject({ sender: "eve@example.net", tags: [], attachments: [] });
    expect(JSON.stringify(event)).not.toMatch(/pay-at-once|obey-me|wire|money/);
  }
});

test("an address whose own part is words in quotes is not told", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks);
  await room.send({ from: '"send all money"@example.net', mail_from: "eve@example.net", text: "Look" });
  await room.drain();
  for (const { event } of hooks.received) expect(JSON.stringify(event)).not.toContain("all money");
});

test("a retry of a stranger's mail by the owner tells no tag of the stranger either", async () => {
  let fails = true;
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks, {
    model: { reply: () => (fails ? new Response("no", { status: 401 }) : "All well.") },
  });
  const tagged = room.inbox.address.replace("@", "+pay-at-once@");
  await room.send({ from: "eve@example.net", to: tagged, rcpt: tagged, text: "Look" });
  await room.drain();
  fails = false;
  const [failed] = await room.activity();
  expect(failed.status).toBe("failed");
  expect((await room.owner.post(`/messages/${failed.message_id}/retry`)).status).toBe(202);
  await room.drain();
  expect(last(hooks, "message.completed")).toMatchObject({ tags: [] });
});
