import { describe, expect, test } from "bun:test";
import { freshId, mailroom, type Mailroom, type RoomMail } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { ADA, BOB, signedRoom, type SignedRoom } from "../support/signed-room.ts";
import { smtpClient } from "../support/smtp-client.ts";

const STRANGER = "Eve <eve@example.net>";

test("an inbox asks for patience when it has had its mails of the hour, and takes them again later", async () => {
  await using room = await mailroom({ config: { plans: { team: { inbound_per_hour: 2 } } } });
  for (const from of ["a@example.net", "b@example.net"])
    expect(await room.send({ from, text: from })).toStartWith("250");
  const refused = await room.send({ from: "c@example.net", text: "third" });
  expect(refused).toStartWith("451 4.7.1 This address takes no more than 2 mails in an hour; please");
  expect(await room.activity()).toHaveLength(2);
  room.clock.advance("30m");
  expect(await room.send({ from: "c@example.net", text: "third" })).toStartWith("250");
});

test("what others send uses up nothing of the owner's share", async () => {
  await using room = await mailroom({ config: { plans: { team: { inbound_per_hour: 1 } } } });
  expect(await room.send({ from: STRANGER, text: "one" })).toStartWith("250");
  expect(await room.send({ from: STRANGER, text: "two" })).toStartWith("451");
  expect(await room.send({ text: "of the owner" })).toStartWith("250");
});

test("one sender is asked for patience by the hour and by the day, and no other is", async () => {
  await using room = await mailroom({
    config: { limits: { inbound_per_sender_hour: 2, inbound_per_sender_day: 3 } },
  });
  expect(await room.send({ from: STRANGER, text: "1" })).toStartWith("250");
  expect(await room.send({ from: STRANGER, text: "2" })).toStartWith("250");
  expect(await room.send({ from: STRANGER, text: "3" })).toContain("2 mails in an hour from one sender");
  expect(await room.send({ from: "bob@example.net", text: "3" })).toStartWith("250");
  room.clock.advance("1h");
  expect(await room.send({ from: STRANGER, text: "3" })).toStartWith("250");
  expect(await room.send({ from: STRANGER, text: "4" })).toContain("3 mails in a day");
});

test("the owner may send five times as many, and others may not", async () => {
  await using room = await mailroom({ config: { limits: { inbound_per_sender_hour: 2 } } });
  for (let nth = 1; nth <= 10; nth += 1)
    expect(await room.send({ ...freshId(), subject: `Mail ${nth}`, text: `Mail ${nth}` })).toStartWith("250");
  expect(await room.send({ ...freshId(), text: "One more" })).toContain(
    "10 mails in an hour from one sender",
  );
  expect(await room.send({ from: STRANGER, text: "1" })).toStartWith("250");
});

test("a mail to several inboxes is put off as a whole, and counts in none of them", async () => {
  await using room = await mailroom({ config: { plans: { team: { inbound_per_hour: 1 } } } });
  const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
  expect(await room.send({ from: STRANGER, text: "fills one" })).toStartWith("250");
  const both = { from: STRANGER, text: "for both", rcpt: [room.inbox.address, other.address] };
  expect(await room.send(both)).toStartWith("451");
  expect(await room.activity()).toHaveLength(1);
  expect(await room.send({ ...both, rcpt: other.address })).toStartWith("250");
});

test("0 is no limit", async () => {
  await using room = await mailroom({
    config: {
      plans: { team: { inbound_per_hour: 0 } },
      limits: { inbound_per_sender_hour: 0, inbound_per_sender_day: 0, replies_per_sender_hour: 0 },
    },
  });
  for (let index = 0; index < 25; index++)
    expect(await room.send({ from: STRANGER, text: String(index) })).toStartWith("250");
});

describe("what nothing proves", () => {
  const FEW = { plans: { team: { inbound_per_hour: 2 } } };
  const forged = (t: SignedRoom, count: number, mail: RoomMail = {}): Promise<string> => {
    const from = `x${count}@nobody${count}.example.net`;
    return t.send({ from, mail_from: from, text: `junk ${count}`, ...freshId(), ...mail });
  };
  /** Sends so many, from as many senders; gives how many were taken. */
  const flood = async (t: SignedRoom, mails: number, mail: RoomMail = {}): Promise<number> => {
    let taken = 0;
    for (let count = 0; count < mails; count += 1)
      if ((await forged(t, count, mail)).startsWith("250")) taken += 1;
    return taken;
  };

  test("uses up a share of its own, and nothing of the owner's or of a stranger's who is proven", async () => {
    await using t = await signedRoom({ config: FEW });
    expect(await flood(t, 5)).toBe(2);
    for (const from of [BOB, ADA]) {
      expect(await t.again(await t.signed({ from }))).toStartWith("250");
      expect(await t.again(await t.signed({ from }))).toStartWith("250");
      expect(await t.again(await t.signed({ from }))).toStartWith("451 4.7.1");
    }
    t.clock.advance("1h");
    expect(await flood(t, 5)).toBe(2);
  });

  test("loses nothing of its share to strangers who are proven", async () => {
    await using t = await signedRoom({ config: FEW });
    for (let count = 0; count < 3; count += 1) await t.again(await t.signed({ from: BOB }));
    expect(await flood(t, 5)).toBe(2);
  });

  test("uses up no rows of refused mail that was proven, nor of machines' mail", async () => {
    await using t = await signedRoom({ inbox: { allowlist_senders: ["lea@example.com"] } });
    await flood(t, 203);
    const hers = (sender: string) => t.activity().then((rows) => rows.filter((row) => row.sender === sender));
    expect(await t.again(await t.signed({ from: BOB }))).toStartWith("550 5.7.1");
    expect(await hers("bob@example.org")).toMatchObject([{ status: "rejected", reason: "not_allowlisted" }]);
    await t.owner.patch(`/inboxes/${t.inbox.id}`, { allowlist_senders: [] });
    const limitless = { limits: { inbound_per_sender_hour: 0, inbound_per_sender_day: 0 } };
    await using other = await signedRoom({
      config: { ...limitless, plans: { team: { inbound_per_hour: 0 } } },
    });
    await flood(other, 203, { headers: { ...freshId().headers, "Auto-Submitted": "auto-replied" } });
    const headers = { "Auto-Submitted": "auto-replied" };
    expect(await other.again(await other.signed({ from: BOB, headers }))).toStartWith("250");
    expect((await other.activity()).filter(({ sender }) => sender === "bob@example.org")).toMatchObject([
      { status: "rejected", reason: "auto_reply" },
    ]);
  });

  test("uses up nothing of what proven strangers may write to the operator", async () => {
    await using t = await signedRoom();
    const operator = { rcpt: "postmaster@mw.test", to: "postmaster@mw.test" };
    let taken = 0;
    for (const network of [1, 2, 3, 4, 5])
      taken += await flood(t, 6, { ...operator, local_address: `127.0.${network}.1` });
    expect(taken).toBe(20);
    const mail = await t.signed({ from: BOB, to: "postmaster@mw.test" });
    expect(await t.again(mail, "postmaster@mw.test")).toStartWith("250");
  });
});

/** The answers to each RCPT, and to the mail. */
async function say(
  room: Mailroom,
  raw: Buffer,
  rcpt: string[],
  {
    from = "eve@example.net",
    beforeData = () => Promise.resolve(),
  }: { from?: string; beforeData?: () => Promise<unknown> } = {},
): Promise<{ each: string[]; last: string }> {
  await using client = await smtpClient(room.door);
  await client.say("EHLO client.example");
  await client.say(`MAIL FROM:<${from}>`);
  const each: string[] = [];
  for (const to of rcpt) each.push((await client.say(`RCPT TO:<${to}>`)).slice(0, 9));
  if (!each.some((reply) => reply.startsWith("250"))) return { each, last: each.at(-1) ?? "" };
  await beforeData();
  await client.say("DATA");
  client.write(raw);
  return { each, last: (await client.say("\r\n.")).slice(0, 9) };
}

test("a mail for several inboxes, one of which is deleted before its words come, is put off, so that its sender is told", async () => {
  await using room = await mailroom();
  const { body: other } = await room.owner.post("/inboxes", { label: "Other" });
  const both = [room.inbox.address, other.address];
  const raw = rawMail({ from: "ada@example.com", to: both.join(", "), ...freshId(), text: "for both" });
  const ada = { from: "ada@example.com" };
  const remove = () => room.owner.delete(`/inboxes/${other.id}`);
  const first = await say(room, raw, both, { ...ada, beforeData: remove });
  expect(first).toEqual({ each: ["250 2.1.5", "250 2.1.5"], last: "451 4.2.1" });
  expect(await room.activity()).toEqual([]);
  const again = await say(room, raw, both, ada);
  expect(again).toEqual({ each: ["250 2.1.5", "550 5.1.1"], last: "250 2.6.0" });
});

describe("a mail for several, one of whom takes no more now", () => {
  const LITTLE = { plans: { team: { inbound_per_hour: 1 } } };
  const shared = (to: string) => rawMail({ from: STRANGER, to, ...freshId(), text: "for both" });
  const ofBob = async (room: Mailroom) => {
    const bob = await room.as("bob@example.org");
    const { body: desk } = await bob.post("/inboxes", { label: "Bob's" });
    const has = async () => (await bob.get("/messages")).body.items.length;
    return { bob, desk, has };
  };

  test("is put off for that one alone when it comes again, for as long as that lasts, and taken by each once", async () => {
    await using room = await mailroom({ config: LITTLE });
    const { desk, has } = await ofBob(room);
    const both = [room.inbox.address, desk.address];
    const raw = shared(room.inbox.address);
    expect(await room.send({ from: "a@example.net", text: "fills it" })).toStartWith("250");
    expect(await say(room, raw, both)).toEqual({ each: ["250 2.1.5", "250 2.1.5"], last: "451 4.7.1" });
    expect([(await room.activity()).length, await has()]).toEqual([1, 0]);
    // Whoever fills it again at once keeps it from nobody else.
    room.clock.advance("1h");
    expect(await room.send({ from: "b@example.net", text: "fills it" })).toStartWith("250");
    expect(await say(room, raw, both)).toEqual({ each: ["451 4.7.1", "250 2.1.5"], last: "250 2.6.0" });
    expect([(await room.activity()).length, await has()]).toEqual([2, 1]);
    // Its server comes again for the one who is left.
    expect((await say(room, raw, [room.inbox.address])).each).toEqual(["451 4.7.1"]);
    room.clock.advance("1h");
    expect((await say(room, raw, [room.inbox.address])).last).toBe("250 2.6.0");
    room.clock.advance("1h");
    expect(await say(room, raw, both)).toEqual({ each: ["250 2.1.5", "250 2.1.5"], last: "250 2.6.0" });
    expect([(await room.activity()).length, await has()]).toEqual([3, 1]);
  });

  test("is put off for all at once who take no more", async () => {
    await using room = await mailroom({ config: LITTLE });
    const { bob, desk, has } = await ofBob(room);
    const { body: third } = await bob.post("/inboxes", { label: "Third" });
    for (const rcpt of [room.inbox.address, desk.address])
      expect(await room.send({ from: "a@example.net", rcpt, text: "fills it" })).toStartWith("250");
    const all = [room.inbox.address, desk.address, third.address];
    const raw = shared(third.address);
    expect((await say(room, raw, all)).last).toBe("451 4.7.1");
    const again = await say(room, raw, all);
    expect(again).toEqual({ each: ["451 4.7.1", "451 4.7.1", "250 2.1.5"], last: "250 2.6.0" });
    expect(await has()).toBe(2);
  });

  test("because of one sender, is divided so for that sender until the next would be taken", async () => {
    await using room = await mailroom({ config: { limits: { inbound_per_sender_hour: 1 } } });
    const { desk } = await ofBob(room);
    const both = [room.inbox.address, desk.address];
    const raw = shared(room.inbox.address);
    expect(await room.send({ from: STRANGER, text: "fills it" })).toStartWith("250");
    const way = "bounces+1@lists.example";
    expect((await say(room, raw, both, { from: way })).last).toBe("451 4.7.1");
    expect(await say(room, raw, both, { from: way })).toEqual({
      each: ["451 4.7.1", "250 2.1.5"],
      last: "250 2.6.0",
    });
    // Others by the same way are not that sender: nothing is held against them for longer than that.
    room.clock.advance("1h");
    expect((await say(room, raw, [room.inbox.address], { from: way })).last).toBe("250 2.6.0");
  });

  test("holds nothing against the owner, nor against mail for one or by another way", async () => {
    await using room = await mailroom({ config: LITTLE });
    const { desk } = await ofBob(room);
    expect(await room.send({ from: STRANGER, text: "fills it" })).toStartWith("250");
    const both = [room.inbox.address, desk.address];
    expect((await say(room, shared(desk.address), [room.inbox.address])).last).toBe("451 4.7.1");
    expect((await say(room, shared(desk.address), [room.inbox.address])).each).toEqual(["250 2.1.5"]);
    expect((await say(room, shared(desk.address), both, { from: "ada@example.com" })).last).toBe("451 4.7.1");
    expect(
      (await say(room, shared(desk.address), [room.inbox.address], { from: "x@example.net" })).each,
    ).toEqual(["250 2.1.5"]);
    expect(await room.send({ text: "of the owner" })).toStartWith("250");
  });

  test("is put off for the owner's own share where that is what is used up", async () => {
    await using room = await mailroom({ config: LITTLE });
    const { desk } = await ofBob(room);
    expect(await room.send({ text: "fills it" })).toStartWith("250");
    const raw = rawMail({ from: ADA, to: desk.address, ...freshId(), text: "for both" });
    const both = [room.inbox.address, desk.address];
    expect((await say(room, raw, both, { from: "ada@example.com" })).last).toBe("451 4.7.1");
    expect(await say(room, raw, both, { from: "ada@example.com" })).toEqual({
      each: ["451 4.7.1", "250 2.1.5"],
      last: "250 2.6.0",
    });
  });

  test("is divided so where the operator is one of them, who has been written to often enough", async () => {
    await using room = await mailroom();
    const { desk, has } = await ofBob(room);
    for (let count = 0; count < 20; count += 1)
      expect(
        await room.send({ from: `a@d${count % 4}.example`, rcpt: "abuse@mw.test", text: `${count}` }),
      ).toStartWith("250");
    const raw = shared(desk.address);
    const both = ["postmaster@mw.test", desk.address];
    expect((await say(room, raw, both)).last).toBe("451 4.7.1");
    expect(await say(room, raw, both)).toEqual({ each: ["451 4.7.1", "250 2.1.5"], last: "250 2.6.0" });
    expect(await has()).toBe(1);
    room.clock.advance("1h");
    expect((await say(room, raw, ["postmaster@mw.test"])).last).toBe("250 2.6.0");
  });

  test("is divided so where the operator's account has no room for it, though no size was announced", async () => {
    await using room = await mailroom({ config: { plans: { team: { storage_mb: 1 } } } });
    const { desk, has } = await ofBob(room);
    expect(await room.send({ text: "Hello" })).toStartWith("250");
    await room.app.db
      .updateTable("account_storage")
      .set({ bytes: 800_000 })
      .where("user_id", "=", room.owner.user.id)
      .execute();
    const raw = rawMail({ from: STRANGER, to: desk.address, ...freshId(), text: "word ".repeat(20_000) });
    const both = ["postmaster@mw.test", desk.address];
    expect((await say(room, raw, both)).last).toBe("452 4.2.2");
    expect(await say(room, raw, both)).toEqual({ each: ["452 4.2.2", "250 2.1.5"], last: "250 2.6.0" });
    expect(await has()).toBe(1);
  });
});
