import { describe, expect, test } from "bun:test";
import { ADA, altered, BOB, signedRoom, type SignedRoom } from "../support/signed-room.ts";

const FEW = { plans: { team: { inbound_per_hour: 3 } }, limits: { inbound_per_sender_hour: 3 } };
const CAPPED = { limits: { replies_per_sender_hour: 3, replies_per_sender_day: 3 } };
const EVERYTHING = { ...FEW, limits: { ...FEW.limits, ...CAPPED.limits } };
const STANDING = /^Read the material below/;

const SENDERS: [who: string, from: string, inbox: Record<string, unknown>, authority: string][] = [
  ["the owner", ADA, {}, "owner"],
  ["a listed sender", BOB, { allowlist_senders: ["bob@example.org"] }, "listed"],
  ["a stranger who is proven", BOB, {}, "stranger"],
];

/** Sends each as somebody else, and says how many were taken. */
async function flood(t: SignedRoom, mails: (Buffer | Promise<Buffer>)[]): Promise<number> {
  let taken = 0;
  for (const mail of mails) if ((await t.again(await mail)).startsWith("250")) taken += 1;
  await t.drain();
  return taken;
}

describe.each(SENDERS)("what is sent again of %s", (_who, from, inbox, authority) => {
  const expectNextTaken = async (t: SignedRoom) => {
    expect(await t.again(await t.signed({ from, text: "The next one." }))).toStartWith("250");
    await t.drain();
    expect(await t.newest()).toMatchObject({ authority, state: "done", sender: expect.any(String) });
    expect((await t.newest()).reason).toBeNull();
  };

  test("as it was, 25 times, keeps the next mail from nothing", async () => {
    await using t = await signedRoom({ config: EVERYTHING, inbox });
    const raw = await t.signed({ from });
    expect(await flood(t, Array<Buffer>(25).fill(raw))).toBe(25);
    expect(await t.activity()).toMatchObject([{ duplicates: 24 }]);
    await expectNextTaken(t);
  });

  test("with a field that is not signed, 25 times, is put off, and keeps the next mail from nothing", async () => {
    await using t = await signedRoom({ config: EVERYTHING, inbox });
    const raws = Array.from({ length: 25 }, async () => altered(await t.signed({ from })));
    expect(await flood(t, raws)).toBe(3);
    await expectNextTaken(t);
  });

  test("of what was written to others, 25 times, meets a cap of its own", async () => {
    await using t = await signedRoom({ config: CAPPED, inbox });
    const raws = Array.from({ length: 20 }, (_, n) =>
      t.signed({ from, to: "mallory@evil.example", text: `${n}` }),
    );
    await flood(t, raws);
    expect((await t.activity()).filter(({ reason }) => reason === "loop_cap")).toHaveLength(17);
    await expectNextTaken(t);
  });

  test("altered and first does not make the real mail a duplicate, nor wait", async () => {
    await using t = await signedRoom({ config: { ...FEW, plans: { team: { inbound_per_hour: 1 } } }, inbox });
    const raw = await t.signed({ from, text: "The real one." });
    expect(await t.again(altered(raw))).toStartWith("250");
    expect(await t.instruction()).toMatch(STANDING);
    expect(await t.again(altered(raw))).toStartWith("250");
    expect(await t.again(raw)).toStartWith("250");
    await t.drain();
    expect(await t.newest()).toMatchObject({ authority, vouched: 1, duplicates: 0, state: "done" });
    expect((await t.activity()).map(({ duplicates }) => duplicates)).toEqual([0, 1]);
  });

  test("that met a cap when it came is counted on its row, and keeps the next mail from nothing", async () => {
    await using t = await signedRoom({
      config: { plans: { team: { inbound_per_hour: 4 } }, limits: { same_body_per_hour: 1 } },
      inbox,
    });
    expect(await flood(t, [t.signed({ from })])).toBe(1);
    const raw = await t.signed({ from });
    expect(await flood(t, Array<Buffer>(25).fill(raw))).toBe(5);
    expect(await t.activity()).toMatchObject([
      { reason: "loop_cap", duplicates: 4, sender: expect.any(String) },
      { status: "done", duplicates: 0 },
    ]);
    await expectNextTaken(t);
  });
});

describe("a mail that comes again and again at the same time", () => {
  test("counts once", async () => {
    await using t = await signedRoom({ config: { plans: { team: { inbound_per_hour: 2 } } } });
    const raw = await t.signed();
    const replies = await Promise.all(Array.from({ length: 20 }, () => t.again(raw)));
    expect(replies.filter((reply) => reply.startsWith("250"))).toHaveLength(20);
    expect(await t.again(await t.signed())).toStartWith("250");
    expect(await t.again(await t.signed())).toStartWith("451");
  });

  test("is another one, and is taken no oftener than the limit says", async () => {
    await using t = await signedRoom({ config: { plans: { team: { inbound_per_hour: 2 } } } });
    const raws = await Promise.all(Array.from({ length: 20 }, () => t.signed()));
    const replies = await Promise.all(raws.map((raw) => t.again(raw)));
    expect(replies.filter((reply) => reply.startsWith("250"))).toHaveLength(2);
    expect(replies.filter((reply) => reply.startsWith("451 4.7.1"))).toHaveLength(18);
    expect(await t.activity()).toHaveLength(2);
  });
});

test("a mail to the same inbox by two of its tags is one run, and counts once", async () => {
  await using t = await signedRoom({ config: { plans: { team: { inbound_per_hour: 1 } } } });
  const [name, domain] = t.inbox.address.split("@");
  expect(await t.again(await t.signed(), [`${name}+one@${domain}`, `${name}+two@${domain}`])).toStartWith(
    "250",
  );
  await t.drain();
  expect(await t.activity()).toMatchObject([{ status: "done", duplicates: 1, tags: ["one", "two"] }]);
});

test("what is sent again to the address that continues a thread does not end the thread", async () => {
  await using t = await signedRoom({ config: { limits: { replies_per_conversation_hour: 2 } } });
  expect(await t.again(await t.signed())).toStartWith("250");
  await t.drain();
  const [answer] = await t.outgoing();
  const fields = Buffer.from(answer?.raw ?? "")
    .toString()
    .replaceAll("\r\n ", " ");
  const thread = /^Reply-To: .*<([^>]+)>/im.exec(fields)?.[1] ?? "";
  expect(thread).toContain("+c_");
  for (let count = 0; count < 4; count += 1)
    await t.again(altered(await t.signed({ to: thread, text: `${count}` })), thread);
  await t.drain();
  expect(await t.again(await t.signed({ to: thread, text: "And now?" }), thread)).toStartWith("250");
  await t.drain();
  const { conversation_id } = await t.newest();
  expect(await t.newest()).toMatchObject({ authority: "owner", state: "done" });
  expect((await t.activity()).at(-1)).toMatchObject({ conversation_id });
});
