import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { dropJob } from "../../src/operation/admin/change-job.ts";
import { hold, release } from "../../src/operation/admin/queue.ts";
import type { JobKind } from "../../src/jobs/kinds.ts";
import { recordEvent } from "../../src/resources/webhooks/events.ts";
import { storeMessages } from "../api/archive.ts";
import { freshId, type Mailroom, mailroom, type RoomOptions } from "../support/mailroom.ts";
import { pass } from "../support/purge.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import {
  deliveriesOf,
  startReceiver,
  TO_LOOPBACK,
  type WebhookReceiver,
} from "../support/webhook-receiver.ts";

const CONFIG = {
  webhooks: TO_LOOPBACK,
  retention: { delivery_days: 1 },
  plans: { team: { history_days: 5 } },
};
const BOB = "Bob <bob@example.org>";
const OBJECT = {
  conversation_id: null,
  source: "email",
  status: "done",
  result: "Hello",
  error: null,
  usage: null,
  subject: null,
  inbox_id: null,
  sender: null,
  tags: [],
  attachments: [],
  metadata: {},
};
const BUSY = { status: 503, headers: { "retry-after": "86400" } };

test("a delivery that is tried again outlives the days of its inbox, and with its end the message goes", async () => {
  await using hook = startReceiver(() => new Response("busy", BUSY));
  await using room = await mailroom({ config: CONFIG, inbox: { retention_days: 1 } });
  const endpoint = await endpointAt(room, hook);
  await room.send({ text: "Say hello" });
  await room.drain();
  await pass(room, 2);
  expect([await statusesOf(room, endpoint), await rowsOf(room)]).toEqual([["pending"], [1, 1]]);
  hook.answer = () => new Response(null, { status: 204 });
  const { length: tries } = hook.received;
  room.clock.advance("2d");
  await room.drain();
  expect(hook.received).toHaveLength(tries + 1);
  await pass(room, 1);
  expect(await rowsOf(room)).toEqual([0, 0]);
});

test("a delivery that has used up its attempts keeps nothing", async () => {
  await using hook = startReceiver(() => new Response("broken", { status: 500 }));
  const webhooks = { ...TO_LOOPBACK, backoff: [0, 60] };
  await using room = await mailroom({ config: { ...CONFIG, webhooks }, inbox: { retention_days: 1 } });
  const endpoint = await endpointAt(room, hook);
  await room.send({ text: "Say hello" });
  await room.drain();
  room.clock.advance("1h");
  await room.drain();
  expect(await statusesOf(room, endpoint)).toEqual(["failed"]);
  await pass(room, 2);
  expect(await rowsOf(room)).toEqual([0, 0]);
});

test.each<[JobKind, RoomOptions]>([
  ["deliver_webhooks", {}],
  ["fan_out_event", {}],
  ["send_mail", { config: { outbound: { mode: "relay", relay_url: "smtp://127.0.0.1:1", retry: [] } } }],
])("an event is told after a hold on %s, whatever days have gone by", async (kind, options) => {
  await using hook = startReceiver();
  await using room = await mailroom({ ...options, config: { ...CONFIG, ...options.config } });
  await endpointAt(room, hook);
  await hold(room.app, [kind]);
  await room.send({ text: "Say hello" });
  await room.drain();
  await pass(room, 7);
  expect(hook.received).toEqual([]);
  await release(room.app, [kind]);
  await room.drain();
  expect(hook.received.map(({ event }) => event.type)).toEqual(["message.completed"]);
  // Nothing of it waits any more.
  await pass(room, 7);
  expect(await rowsOf(room)).toEqual([0, 0]);
});

test("what waits is passed over, however much of it there is, and what is behind it goes", async () => {
  await using hook = startReceiver();
  await using room = await mailroom({ config: CONFIG });
  await endpointAt(room, hook);
  await hold(room.app, ["fan_out_event"]);
  // More than one step looks at.
  const waiting = await storeTold(room, 60, { held: false });
  await storeTold(room, 60, { held: true });
  await pass(room, 7);
  const left = await room.app.db.selectFrom("messages").select("id").orderBy("id").execute();
  expect(left.map(({ id }) => id)).toEqual(waiting);
  expect(await rowsOf(room)).toEqual([60, 60]);
  await release(room.app, ["fan_out_event"]);
  await room.drain();
  expect(hook.received.map(({ event }) => event.data.object.message_id).toSorted()).toEqual(waiting);
  await pass(room, 1);
  expect(await rowsOf(room)).toEqual([0, 0]);
});

describe("a message stays while somebody is to be told of it", () => {
  test("its sender that it failed", async () => {
    await using room = await mailroom({ config: CONFIG });
    await hold(room.app, ["tell_failure"]);
    await room.send({ subject: "Milk" });
    const [job] = await room.app.db.selectFrom("jobs").select("id").execute();
    await dropJob(room.app, job?.id ?? "", "the model is being moved");
    const answers = async () => (await room.outgoing()).map(({ envelope_to, kind }) => [envelope_to, kind]);
    await expectKept(room, "tell_failure", [[["ada@example.com", "notice"]], answers]);
  });

  test("its owner that it was left out", async () => {
    const config = { ...CONFIG, limits: { same_body_per_hour: 1 } };
    await using room = await mailroom({ config, inbox: { allowlist_senders: ["bob@example.org"] } });
    await hold(room.app, ["mail_notice"]);
    for (let count = 0; count < 2; count += 1) {
      await room.send({ ...freshId(), from: BOB, text: "Buy milk" });
      await room.drain();
    }
    await expectKept(room, "mail_notice", [["A mail was taken, but not worked on"], () => letters(room)]);
  });

  test("its owner that the answer came back", async () => {
    await using sink = await startSmtpSink({
      reject: (to) => (to.endsWith(".org") ? "550 who?" : undefined),
    });
    const outbound = { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` } as const;
    const inbox = { allowlist_senders: ["bob@example.org"] };
    await using room = await mailroom({ config: { ...CONFIG, outbound }, inbox });
    await hold(room.app, ["mail_returns"]);
    await room.send({ from: BOB, text: "Buy milk" });
    await room.drain();
    await expectKept(room, "mail_returns", [["An answer could not be delivered"], () => letters(room)]);
  });
});

/** For longer than its history, until the hold ends and it was told; then it goes. */
async function expectKept(
  room: Mailroom,
  kind: JobKind,
  [told, tell]: [unknown[], () => Promise<unknown[]>],
): Promise<void> {
  await pass(room, 7);
  expect(await tell()).toEqual([]);
  await release(room.app, [kind]);
  await room.drain();
  expect(await tell()).toEqual(told);
  await pass(room, 7);
  expect(await rowsOf(room)).toEqual([0, 0]);
}

/** The subjects of what the server itself has written. */
async function letters(room: Mailroom): Promise<string[]> {
  const mails = (await room.outgoing()).filter(({ message_id }) => message_id === null);
  const parsed = await Promise.all(mails.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
  return parsed.map(({ subject }) => subject ?? "");
}

/** Messages that are done, each with an event; an event that is `held` has no job. Gives their ids. */
async function storeTold({ app, owner, ...t }: Mailroom, count: number, { held }: { held: boolean }) {
  const stored = await storeMessages(
    { app, ...t },
    owner.user,
    Array.from({ length: count }, () => ({})),
  );
  await app.write(async (tx) => {
    for (const { id: message_id, created } of stored) {
      const object = async () => ({ ...OBJECT, message_id, created });
      const event = { user_id: owner.user.id, type: "message.completed", livemode: true, object } as const;
      await recordEvent(app, tx, event, held);
    }
  });
  return stored.map(({ id }) => id);
}

function endpointAt(room: Mailroom, hook: WebhookReceiver): Promise<string> {
  const asked = room.owner.post("/v1/webhooks", { url: hook.url, event_types: ["message.completed"] });
  return asked.then(({ body }) => body.id as string);
}

async function statusesOf(room: Mailroom, endpoint: string): Promise<string[]> {
  return (await deliveriesOf(room, endpoint)).map(({ status }) => status);
}

/** How many events and messages there are. */
async function rowsOf({ app }: Mailroom): Promise<number[]> {
  const events = await app.db.selectFrom("events").select("id").execute();
  const messages = await app.db.selectFrom("messages").select("id").execute();
  return [events.length, messages.length];
}
