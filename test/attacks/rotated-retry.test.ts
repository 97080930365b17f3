import { describe, expect, test } from "bun:test";
import { mailroom } from "../support/mailroom.ts";

/** A stranger's mail fails; its owner gives the inbox another address, and later has it tried again. */
async function retried(rotated: boolean) {
  let fails = true;
  const room = await mailroom({
    model: { reply: () => (fails ? new Response("no", { status: 400 }) : "Hello.") },
  });
  await room.send({ from: "Eve <eve@example.net>", subject: "Hi", text: "Hello?" });
  await room.drain();
  const failed = await room.newest();
  expect(failed.state).toBe("failed");
  fails = false;
  if (rotated) expect((await room.owner.post(`/inboxes/${room.inbox.id}/rotate`)).status).toBe(200);
  const { body: inbox } = await room.owner.get(`/inboxes/${room.inbox.id}`);
  expect((await room.owner.post(`/messages/${failed.id}/retry`)).status).toBe(202);
  await room.drain();
  const told = (await room.outgoing())
    .filter(({ envelope_to }) => envelope_to === "eve@example.net")
    .map(({ raw }) => Buffer.from(raw ?? []).toString());
  return { room, address: inbox.address as string, told };
}

describe("a stranger whose failed mail is tried again", () => {
  test("is answered from the address that was written to", async () => {
    const { room, told, address } = await retried(false);
    await using _ = room;
    expect(told.join()).toContain(address);
  });

  test("is not told the new address of a rotated inbox", async () => {
    const { room, told, address } = await retried(true);
    await using _ = room;
    expect(address).not.toBe(room.inbox.address);
    expect(told.join()).not.toContain(address);
  });
});
