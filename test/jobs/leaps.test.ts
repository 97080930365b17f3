import { describe, expect, test } from "bun:test";
import { clockWarning } from "../../src/jobs/clock.ts";
import { DAY_SECONDS } from "../../src/lib/durations.ts";
import { createPolicyFinder } from "../../src/mail/sending/mta-sts.ts";
import { addDomain, domainDesk } from "../support/domain-desk.ts";
import { freshId, type Mailroom, mailroom } from "../support/mailroom.ts";
import { purge } from "../support/purge.ts";
import { signedRoom } from "../support/signed-room.ts";

const LEAPS = ["2d", "9d", "3650d"];

function call(room: Mailroom, body: object, key?: string) {
  return room.owner.post("/v1/messages", body, key === undefined ? {} : { "idempotency-key": key });
}

describe.each(LEAPS)("with a clock that leaps %s ahead", (leap) => {
  test("an Idempotency-Key is known, before and after the next deletion, and nothing is charged twice", async () => {
    await using room = await mailroom();
    const first = await call(room, { instruction: "Pay" }, "k1");
    room.clock.leap(leap);
    for (const look of [async () => {}, () => purge(room)]) {
      await look();
      const again = await call(room, { instruction: "Pay" }, "k1");
      expect(again.body.message_id).toBe(first.body.message_id);
    }
    // The same with a key that came while the clock was wrong, once it is right.
    const second = await call(room, { instruction: "Pay again" }, "k2");
    room.clock.leap(`-${leap}`);
    const again = await call(room, { instruction: "Pay again" }, "k2");
    expect(again.body.message_id).toBe(second.body.message_id);
    expect(room.model.requests).toHaveLength(2);
  });

  test("the same mail runs once, and what was kept is kept", async () => {
    await using room = await mailroom();
    const mail = { ...freshId(), text: "Do it." };
    await room.send(mail);
    await room.drain();
    room.clock.leap(leap);
    await purge(room);
    // The first look after a leap of more than a day only says so.
    await purge(room);
    await room.send(mail);
    await room.drain();
    expect(room.model.requests).toHaveLength(1);
    const raw = await room.app.db.selectFrom("raw_mails").select("purged_at").execute();
    expect(raw).toEqual([{ purged_at: null }]);
  });

  test("a message deleted meanwhile keeps none that is deleted later from being erased", async () => {
    await using room = await mailroom();
    const ids: string[] = [];
    for (const name of ["one", "two"]) ids.push((await call(room, { instruction: name })).body.message_id);
    room.clock.leap(leap);
    await room.owner.delete(`/messages/${ids[0]}`);
    await room.drain();
    room.clock.leap(`-${leap}`);
    // As every job that is planned too far ahead once the clock is set back.
    await room.app.db.updateTable("jobs").set({ run_at: 0 }).where("kind", "=", "erase_messages").execute();
    await room.drain();
    await room.owner.delete(`/messages/${ids[1]}`);
    for (let minutes = 0; minutes < 3; minutes += 1) {
      room.clock.advance("1m");
      await room.drain();
    }
    expect(await room.app.db.selectFrom("messages").select("id").execute()).toEqual([]);
  });

  test("a policy on who gets the mail of a domain holds as long as it says", async () => {
    await using t = await domainDesk();
    const policyOf = createPolicyFinder(t.app);
    const policy = { mode: "enforce", mx: JSON.stringify(["mx.there.test"]) } as const;
    const expires = t.app.now() + DAY_SECONDS;
    const row = { domain: "there.test", policy_id: "1", ...policy, expires };
    await t.app.db.insertInto("transport_policies").values(row).execute();
    t.clock.leap(leap);
    expect(await policyOf("there.test")).toMatchObject({ mode: "enforce" });
    t.clock.leap(`-${leap}`);
    t.clock.advance("25h");
    expect(await policyOf("there.test")).toEqual({ mode: "none", mx: [] });
  });

  test("a domain that waits for its records is not given up", async () => {
    await using t = await domainDesk();
    const { id } = await addDomain(t.ada);
    t.clock.leap(leap);
    await t.drain();
    await t.app.db.updateTable("jobs").set({ run_at: 0 }).where("kind", "=", "check_domain").execute();
    await t.drain();
    expect((await t.ada.get("/custom-domains")).body).toMatchObject([{ id, status: "pending" }]);
    // As long as that takes on a clock that is right, it is.
    t.clock.leap(`-${leap}`);
    t.clock.advance("8d");
    await t.app.db.updateTable("jobs").set({ run_at: 0 }).where("kind", "=", "check_domain").execute();
    await t.drain();
    expect((await t.ada.get("/custom-domains")).body).toMatchObject([{ id, status: "failed" }]);
  });
});

test.each<[string, string[]]>([
  ["back by hours", ["-5h"]],
  ["ahead by days, and back", ["9d", "-9d"]],
  ["back by years, and right again", ["-3650d", "3650d"]],
])("with a clock that is set %s a turn knows those before it, and is the newest", async (_claim, leaps) => {
  await using room = await mailroom();
  const first = await call(room, { instruction: "My name is Ada." });
  const { conversation_id } = first.body;
  const turns = [first.body.message_id];
  for (const leap of leaps) {
    for (let count = 0; count < 3; count += 1) await call(room, { instruction: `Something else ${count}` });
    room.clock.advance("5s");
    room.clock.leap(leap);
    const { body: next } = await call(room, { instruction: `What is my name? ${leap}`, conversation_id });
    turns.push(next.message_id);
    const words = room.model.requests.at(-1)?.body?.messages.map(({ content }) => content);
    expect(words).toContainEqual(expect.stringContaining("My name is Ada."));
    const { body: page } = await room.owner.get("/messages?limit=1");
    expect(page.items[0].message_id).toBe(next.message_id);
    const { body: now } = await room.owner.get(
      `/messages?limit=1&since=${room.app.now() - 60}&until=${room.app.now()}`,
    );
    expect(now.items[0].message_id).toBe(next.message_id);
    const { body: older } = await room.owner.get(`/messages?limit=1&cursor=${page.next_cursor}`);
    expect(older.items[0].message_id < next.message_id).toBe(true);
    const { body: threads } = await room.owner.get("/conversations?limit=1");
    expect(threads.items[0].id).toBe(conversation_id);
    const { body: story } = await room.owner.get(`/conversations/${conversation_id}`);
    expect(story.turns.map(({ message_id }: { message_id: string }) => message_id)).toEqual(turns);
  }
});

test("on a clock that is set back, and stays so, what is known is known, and what waits is tried", async () => {
  await using room = await mailroom();
  const first = await call(room, { instruction: "Pay" }, "k1");
  room.clock.leap("-30h");
  const second = await call(room, { instruction: "Pay again" }, "k2");
  for (const leap of ["0s", "30h"]) {
    room.clock.leap(leap);
    await purge(room);
    expect((await call(room, { instruction: "Pay" }, "k1")).body.message_id).toBe(first.body.message_id);
    const again = await call(room, { instruction: "Pay again" }, "k2");
    expect(again.body.message_id).toBe(second.body.message_id);
  }
  expect(room.model.requests).toHaveLength(2);
});

test("what came on a clock that was ahead uses up nothing of what its sender may do once that is right", async () => {
  await using room = await mailroom({
    config: { limits: { replies_per_sender_hour: 2, inbound_per_sender_hour: 0 } },
  });
  const sendOne = async () => {
    await room.send({ ...freshId(), text: `Do ${room.model.requests.length}.` });
    await room.drain();
  };
  room.clock.leap("9d");
  await sendOne();
  await sendOne();
  await sendOne();
  expect(room.model.requests).toHaveLength(2);
  room.clock.leap("-9d");
  await sendOne();
  expect(room.model.requests).toHaveLength(3);
});

test.each(["800d", "-20d"])(
  "with a clock that leaps by %s a signed mail is its author's, by whichever of the two times it was written, and runs once",
  async (leap) => {
    await using t = await signedRoom();
    const before = await t.signed({ text: "Say hello." });
    t.clock.leap(leap);
    const after = await t.signed({ text: "Say goodbye." });
    for (const [raw, words] of [
      [before, "Say hello."],
      [after, "Say goodbye."],
    ] as const) {
      await t.again(raw);
      expect(await t.instruction()).toBe(words);
    }
    t.clock.advance("2h");
    await purge(t);
    await t.again(before);
    await t.again(after);
    await t.drain();
    expect(t.model.requests).toHaveLength(2);
  },
);

test("a leap is told of until it has stayed for an hour, or is taken back", async () => {
  await using room = await mailroom();
  expect(clockWarning(room.app)).toBeUndefined();
  room.clock.leap("9d");
  expect(clockWarning(room.app)).toContain("9 days ahead of");
  room.clock.leap("-9d");
  expect(clockWarning(room.app)).toBeUndefined();
  room.clock.leap("-5h");
  expect(clockWarning(room.app)).toContain("5 hours behind");
  room.clock.advance("1h");
  expect(clockWarning(room.app)).toBeUndefined();
});
