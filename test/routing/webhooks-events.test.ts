import { expect, test } from "bun:test";
import { setPlan } from "../../src/resources/accounts/accounts.ts";
import { freshId, mailroom, type Mailroom, type RoomOptions } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import { startReceiver, TO_LOOPBACK, type WebhookReceiver } from "../support/webhook-receiver.ts";

const BOB = "Bob <bob@example.org>";

/** A room whose owner hears of everything. */
async function toldRoom(
  hooks: WebhookReceiver,
  options: RoomOptions = {},
  event_types: string[] = ["*"],
): Promise<Mailroom> {
  const room = await mailroom({ ...options, config: { webhooks: TO_LOOPBACK, ...options.config } });
  expect((await room.owner.post("/v1/webhooks", { url: hooks.url, event_types })).status).toBe(201);
  return room;
}

/** What was told so far, in the order of the events. */
function told(hooks: WebhookReceiver): string[] {
  const events = hooks.received.map(({ event }) => event).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return events.map(({ type, data }) => `${type} ${data.object.source} ${data.object.status}`);
}

test("a mail that is done is told of twice: when it was accepted, and when its answer is on its way", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks, { model: { reply: () => "All well." } });
  await room.send({ subject: "Minutes", text: "Sum up" });
  await room.drain();
  expect(told(hooks)).toEqual(["message.received email processing", "message.completed email done"]);
  const [message] = await room.activity();
  const done = hooks.received.find(({ event }) => event.type === "message.completed")?.event;
  expect(done).toEqual({
    id: expect.stringMatching(/^evt_[0-9a-z]{26}$/),
    type: "message.completed",
    created: room.app.now(),
    livemode: true,
    data: {
      object: {
        message_id: message.message_id,
        conversation_id: message.conversation_id,
        source: "email",
        status: "done",
        result: "All well.",
        error: null,
        usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
        subject: "Minutes",
        created: message.created,
        inbox_id: room.inbox.id,
        sender: "ada@example.com",
        tags: [],
        attachments: [],
        metadata: {},
      },
    },
  });
  await room.drain();
  expect(hooks.received).toHaveLength(2);
});

test("message.completed waits for the first attempt to hand the answer over, whatever comes of it", async () => {
  let answer: string | undefined = "451 4.3.0 not today";
  let before: string[] | undefined;
  await using hooks = startReceiver();
  await using sink = await startSmtpSink({
    reject_mail: () => {
      before ??= told(hooks);
      return answer;
    },
  });
  await using room = await toldRoom(hooks, {
    config: {
      webhooks: TO_LOOPBACK,
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}`, retry: [60] },
    },
  });
  await room.send({});
  await room.drain();
  expect(before).not.toContain("message.completed email done");
  expect(told(hooks)).toEqual(["message.received email processing", "message.completed email done"]);
  expect(await room.activity()).toMatchObject([{ status: "done", reply_status: "deferred" }]);
  answer = undefined;
  room.clock.advance("61s");
  await room.drain();
  expect(sink.mails).toHaveLength(1);
  expect(hooks.received).toHaveLength(2);
});

test("a mail that fails, is rejected, or comes over the cap is told of once for its end", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks, {
    config: { webhooks: TO_LOOPBACK, plans: { team: { credits: 1 } } },
    model: { fault: "unauthorized" },
  });
  await room.send({ ...freshId() });
  await room.drain();
  expect(told(hooks).splice(0)).toEqual(["message.received email processing", "message.failed email failed"]);
  hooks.received.length = 0;

  await room.send({ ...freshId(), headers: { ...freshId().headers, "Auto-Submitted": "auto-replied" } });
  await room.drain();
  const [rejected] = await room.activity();
  expect(rejected.status).toBe("rejected");
  expect(told(hooks)).toEqual(["message.skipped email skipped"]);
  hooks.received.length = 0;

  await room.send({ ...freshId(), from: "not an address", mail_from: "bob@example.org" });
  await room.drain();
  const [unreadable] = await room.activity();
  expect(unreadable.status).toBe("rejected");
  expect(told(hooks)).toEqual(["message.failed email failed"]);
  hooks.received.length = 0;

  room.model.fault = "none";
  for (const text of ["One", "Two"]) await room.send({ text, ...freshId(), from: BOB });
  await room.drain();
  expect(told(hooks).toSorted()).toEqual([
    "message.completed email done",
    "message.received email processing",
    // The second one is taken, as the credit is merely held for the first.
    "message.received email processing",
    "message.skipped email limited",
  ]);
});

test("a call is told of once, when it ends: waited for, asynchronous, failed, retried, private, over the cap", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks, {
    config: { webhooks: TO_LOOPBACK, plans: { team: { credits: 4 } } },
    model: { reply: () => "A secret word." },
  });
  const call = async (body: object): Promise<string[]> => {
    hooks.received.length = 0;
    await room.owner.post("/v1/messages", { instruction: "Say hello", ...body });
    await room.drain();
    return told(hooks);
  };
  expect(await call({})).toEqual(["message.completed api done"]);
  expect(await call({ async: true })).toEqual(["message.completed api done"]);
  room.model.fault = "unauthorized";
  expect(await call({})).toEqual(["message.failed api failed"]);
  const [failed] = await room.activity();
  room.model.fault = "none";
  hooks.received.length = 0;
  await room.owner.post(`/messages/${failed.message_id}/retry`);
  await room.drain();
  expect(told(hooks)).toEqual(["message.completed api done"]);
  expect(await call({ instruction: "--private Say hello" })).toEqual(["message.completed api done"]);
  expect(hooks.received[0]?.body).not.toContain("secret word");
  expect(await call({})).toEqual(["message.skipped api limited"]);
});

test("mail to an inbox that rests since its plan has no room for it is told of once, as skipped", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks, { config: { plans: { free: { inboxes: 1 } } } });
  const { body: newest } = await room.owner.post("/inboxes", { label: "Newest" });
  await setPlan(room.app, { email: "ada@example.com", plan: "free" });
  await room.send({ to: newest.address, rcpt: newest.address });
  await room.drain();
  expect(told(hooks)).toEqual(["message.skipped email limited"]);
  const [message] = await room.activity();
  expect(hooks.received[0]?.event).toMatchObject({
    livemode: true,
    data: { object: { message_id: message.message_id, error: message.error, result: "" } },
  });
  expect(message).toMatchObject({ reason: "plan_limit", error: expect.any(String) });
});

test("a test run is told of with livemode false", async () => {
  await using hooks = startReceiver();
  await using room = await toldRoom(hooks);
  expect((await room.owner.post(`/inboxes/${room.inbox.id}/test`, {})).status).toBe(200);
  await room.drain();
  expect(told(hooks)).toEqual(["message.completed test done"]);
  expect(hooks.received[0]?.event.livemode).toBe(false);
});

test("an endpoint hears of the types that it asked for, and others' endpoints of nothing", async () => {
  await using hooks = startReceiver();
  await using others = startReceiver();
  await using room = await toldRoom(hooks, {}, ["message.received"]);
  const bob = await room.as("bob@example.org");
  await bob.post("/v1/webhooks", { url: others.url, event_types: ["*"] });
  await room.send({});
  await room.drain();
  expect(told(hooks)).toEqual(["message.received email processing"]);
  expect(others.received).toEqual([]);
});

test("all endpoints get the same event, with the same id and body", async () => {
  await using one = startReceiver();
  await using other = startReceiver();
  await using room = await toldRoom(one);
  await room.owner.post("/v1/webhooks", { url: other.url, event_types: ["*"] });
  await room.owner.post("/v1/messages", { instruction: "Say hello" });
  await room.drain();
  expect(one.received.map(({ body }) => body)).toEqual(other.received.map(({ body }) => body));
  expect(one.received).toHaveLength(1);
  expect(one.received[0]?.headers["service-signature"]).not.toBe(
    other.received[0]?.headers["service-signature"],
  );
});

test("an account without endpoints keeps no events", async () => {
  await using room = await mailroom();
  await room.send({});
  await room.drain();
  expect(await room.app.db.selectFrom("events").select("id").execute()).toEqual([]);
});
