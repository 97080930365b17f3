import { expect, test } from "bun:test";
import type { MessageState } from "../../src/db/schema.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { pass } from "../support/purge.ts";
import { BOB, signedRoom, type SignedRoom, straight } from "../support/signed-room.ts";

/** A mailroom whose model refuses, and a mail of the owner that failed there. */
async function withFailed() {
  const room = await mailroom({ model: { fault: "unauthorized", reply: () => "Ordered." } });
  const raw = rawMail({
    to: room.inbox.address,
    from: "Ada <ada@example.com>",
    subject: "Order",
    text: "Please order ten",
    headers: { "Message-ID": "<order-10@example.com>", Date: new Date(room.clock.now()).toUTCString() },
  });
  expect(await room.send({ raw })).toStartWith("250");
  await room.drain();
  const [failed] = await room.activity();
  room.model.fault = "none";
  return { room, raw, failed };
}

/** A signed order of the owner that failed, and was done when the owner tried it again. */
async function retriedOrder(room: SignedRoom): Promise<Buffer> {
  room.model.fault = "unauthorized";
  const raw = await room.signed({ text: "Please order ten chairs." });
  await straight(room, raw);
  await room.drain();
  const [failed] = await room.activity();
  room.model.fault = "none";
  await room.owner.post(`/messages/${failed.message_id}/retry`);
  await room.drain();
  return raw;
}

async function states(room: Mailroom): Promise<MessageState[]> {
  return (await room.activity()).map(({ status }: { status: MessageState }) => status);
}

test("a mail that failed, and was done when its owner tried it again, is the same one when it comes again", async () => {
  const { room, raw, failed } = await withFailed();
  await using _ = room;
  expect((await room.owner.post(`/messages/${failed.message_id}/retry`)).status).toBe(202);
  await room.drain();
  room.clock.advance("30m");
  expect(await room.send({ raw })).toStartWith("250");
  await room.drain();
  expect(await states(room)).toEqual(["done", "failed"]);
});

test("a mail that failed is the same one while it is being tried again", async () => {
  const { room, raw, failed } = await withFailed();
  await using _ = room;
  await room.owner.post(`/messages/${failed.message_id}/retry`);
  expect(await room.send({ raw })).toStartWith("250");
  await room.drain();
  expect(await states(room)).toEqual(["done", "failed"]);
});

test("a mail that was tried again is the same one once its messages have been deleted for their age", async () => {
  await using room = await signedRoom({ inbox: { retention_days: 1 } });
  const raw = await retriedOrder(room);
  await pass(room, 3);
  expect(await states(room)).toEqual([]);
  await room.again(raw);
  await room.drain();
  expect(await states(room)).not.toContain("done");
});

test("a signed order that its owner tried again cannot be had done once more by whoever has a copy of it", async () => {
  await using room = await signedRoom();
  const raw = await retriedOrder(room);
  for (let hour = 0; hour < 4; hour++) {
    room.clock.advance("1h");
    await room.again(raw);
    await room.drain();
  }
  expect(await states(room)).toEqual(["done", "failed"]);
});

test("what failed is not tried again once it has come again and is done, or is being worked on", async () => {
  const { room, raw, failed } = await withFailed();
  await using _ = room;
  const retry = () => room.owner.post(`/messages/${failed.message_id}/retry`);
  await room.send({ raw });
  const early = await retry();
  expect([early.status, early.body.detail]).toEqual([
    409,
    expect.stringContaining("is being worked on: see message "),
  ]);
  await room.drain();
  const late = await retry();
  expect([late.status, late.body.detail]).toEqual([409, expect.stringContaining("is done: see message ")]);
  await room.drain();
  expect(await states(room)).toEqual(["done", "failed"]);
});

test("a stranger who forges its Message-ID does not keep the owner from trying it again", async () => {
  await using room = await signedRoom();
  room.model.fault = "unauthorized";
  const headers = { "Message-ID": "<order-10@example.com>" };
  const mail = { from: BOB, to: room.inbox.address, text: "Do you have chairs?", headers };
  await straight(room, await room.signed(mail), "bob@example.org");
  await room.drain();
  room.model.fault = "none";
  await room.again(rawMail(mail));
  await room.drain();
  const [forged, failed] = await room.activity();
  expect([forged.status, failed.status]).toEqual(["done", "failed"]);
  expect((await room.owner.post(`/messages/${failed.message_id}/retry`)).status).toBe(202);
});

test("tries of the owner that fail use up no try of the mail", async () => {
  const { room, raw, failed } = await withFailed();
  await using _ = room;
  room.model.fault = "unauthorized";
  for (let tries = 0; tries < 3; tries++) {
    await room.owner.post(`/messages/${failed.message_id}/retry`);
    await room.drain();
  }
  room.model.fault = "none";
  await room.send({ raw });
  await room.drain();
  expect(await states(room)).toEqual(["done", "failed", "failed", "failed", "failed"]);
});
