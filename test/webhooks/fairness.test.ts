import { expect, test } from "bun:test";
import type { Socket } from "node:net";
import { hookDesk } from "../api/hook-desk.ts";
import { freshId, mailroom } from "../support/mailroom.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";
import type { Caller, TestApp } from "../support/app.ts";
import {
  deliveriesOf,
  endpointOf,
  startRawReceiver,
  startReceiver,
  TO_LOOPBACK,
} from "../support/webhook-receiver.ts";
import { happens } from "../support/happens.ts";
import { startClock } from "../support/own-time.ts";

/** One sender's mails, all alike, are not what is looked at here. */
const UNLIMITED = {
  replies_per_conversation_hour: 0,
  replies_per_sender_hour: 0,
  replies_per_sender_day: 0,
  inbound_per_sender_hour: 0,
  same_body_per_hour: 0,
};

/** Adds as many endpoints to an account, like its first one but at another address. */
async function addEndpoints(
  t: TestApp,
  owner: Caller,
  { url, count, event_types = ["*"] }: { url: string; count: number; event_types?: string[] },
): Promise<void> {
  const { status, body } = await owner.post("/v1/webhooks", { url, event_types });
  expect(status).toBe(201);
  const row = await endpointOf(t, body.id as string);
  const secrets = t.app.secrets.open(row.sealed, row.id);
  for (let index = 1; index < count; index += 1) {
    const id = Bun.randomUUIDv7();
    const more = { ...row, id, sealed: t.app.secrets.seal(secrets, id) };
    await t.app.db.insertInto("webhook_endpoints").values(more).execute();
  }
}

test("however many endpoints of a few accounts hang, that of another account is served at once", async () => {
  const held: Socket[] = [];
  let answer = (socket: Socket): unknown => held.push(socket);
  await using hanging = await startRawReceiver((socket) => answer(socket));
  await using t = await hookDesk();
  await t.hook();
  const others = [await t.as("bob@example.org"), await t.as("carl@example.org")];
  for (const owner of others) {
    await addEndpoints(t, owner, { url: hanging.url, count: 600 });
    await happens(t, owner);
  }
  const hung = t.drain();
  await hanging.reached(600);
  const event_id = await t.happen();
  using clock = startClock();
  const served = t.drain();
  while (t.received.length === 0) await Promise.race([Bun.sleep(5), served]);
  expect(clock.ms()).toBeLessThan(2_000);
  expect(t.received[0]?.headers["service-event-id"]).toBe(event_id);
  // Whoever has nothing more to send leaves the slots to the others.
  answer = (socket) => socket.end("HTTP/1.1 204 No Content\r\n\r\n");
  for (const socket of held) answer(socket);
  await Promise.all([hung, served]);
  expect(hanging.connections).toBe(1_200);
});

test("mail comes in and goes out at its pace while 500 endpoints hang, half of them its owner's", async () => {
  await using hooks = startReceiver();
  await using hanging = await startRawReceiver(() => undefined);
  await using sink = await startSmtpSink();
  await using room = await mailroom({
    model: { reply: () => "All well." },
    config: {
      webhooks: TO_LOOPBACK,
      limits: UNLIMITED,
      plans: { team: { webhooks: 500 } },
      outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${sink.port}` },
    },
  });
  room.app.worker?.start();
  const mails = async (count: number): Promise<number> => {
    using clock = startClock();
    for (let index = 0; index < count; index += 1) {
      expect(await room.send({ ...freshId() })).toStartWith("250 ");
      await sink.next();
    }
    return clock.ms();
  };
  await mails(1);
  const before = await mails(10);
  const dead = { url: hanging.url, count: 250, event_types: ["message.failed"] };
  for (const owner of [room.owner, await room.as("bob@example.org")]) {
    await addEndpoints(room, owner, dead);
    await happens(room, owner, { type: "message.failed" });
  }
  const told = { url: hooks.url, event_types: ["message.completed"] };
  expect((await room.owner.post("/v1/webhooks", told)).status).toBe(201);
  await hanging.reached(500);
  const during = await mails(10);
  await hooks.reached(10);
  expect(hanging.connections).toBe(500);
  await hanging[Symbol.asyncDispose]();
  expect(during).toBeLessThan(3 * before + 1_000);
});

test("an endpoint has no more of what is long in hand than fits, and gets all of it in the end", async () => {
  const held: (() => void)[] = [];
  let holding = true;
  await using hooks = startReceiver(async () => {
    if (holding) await new Promise<void>((resolve) => held.push(resolve));
    return new Response();
  });
  await using t = await hookDesk();
  const { id } = await t.hook({ url: hooks.url });
  // Each of these letters takes six bytes.
  const result = "\u0001".repeat(150_000);
  for (let count = 0; count < 8; count += 1) await happens(t, t.ada, { result });
  const drained = t.drain();
  await hooks.reached(2);
  const begun = await deliveriesOf(t, id);
  expect(begun.filter(({ attempts }) => attempts > 0)).toHaveLength(2);
  holding = false;
  for (const resolve of held) resolve();
  await drained;
  expect(hooks.received).toHaveLength(8);
  expect((await deliveriesOf(t, id)).map(({ attempts }) => attempts)).toEqual(Array(8).fill(1));
});
