import { describe, expect, test } from "bun:test";
import { mailroom, signedBy } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { pass, purge } from "../support/purge.ts";
import { ADA, altered, BOB, signedRoom, type SignedRoom, straight } from "../support/signed-room.ts";

const STANDING = /^Read the material below/;
const A_DAY = { inbox: { retention_days: 1 } };

const keysOf = (t: SignedRoom) => t.app.db.selectFrom("mail_keys").selectAll().execute();

/** A mail of the owner that has been obeyed, and of which the message has been deleted. */
async function obeyed(t: SignedRoom, raw: Buffer): Promise<void> {
  expect(await t.again(raw)).toStartWith("250");
  expect(await t.instruction()).toBe("Say hello.");
  await pass(t, 3);
  expect(await t.activity()).toEqual([]);
}

describe("a mail of which the message has been deleted", () => {
  test("is not worked on when it is sent again, and a row says so, with how often", async () => {
    await using t = await signedRoom(A_DAY);
    const raw = await t.signed();
    await obeyed(t, raw);
    for (let count = 0; count < 3; count += 1) expect(await t.again(raw)).toStartWith("250");
    await t.drain();
    expect(t.model.requests).toHaveLength(1);
    expect(await t.activity()).toMatchObject([
      {
        status: "rejected",
        reason: "duplicate",
        duplicates: 2,
        sender: "ada@example.com",
        credits_charged: 0,
      },
    ]);
    expect((await t.activity())[0].error).toBe(
      "skipped: It was left out, because the same mail has been here before; that message has been deleted since. To have it done, write it as a new mail.",
    );
    await pass(t, 3);
    expect(await t.activity()).toEqual([]);
    await t.again(raw);
    expect(await t.activity()).toMatchObject([{ reason: "duplicate", duplicates: 0 }]);
  });

  test("is known for a year, and after that its date is too old to be obeyed", async () => {
    await using t = await signedRoom(A_DAY);
    const raw = await t.signed();
    await obeyed(t, raw);
    await pass(t, 361);
    expect(await t.again(raw)).toStartWith("250");
    await pass(t, 1);
    expect(await t.again(raw)).toStartWith("250");
    await t.drain();
    expect(t.model.requests).toHaveLength(1);
    await pass(t, 2);
    expect(await keysOf(t)).toEqual([]);
    expect(await t.again(raw)).toStartWith("250");
    expect(await t.instruction()).toMatch(STANDING);
    expect(await t.newest()).toMatchObject({ authority: "stranger", vouched: 0 });
  });

  test("leaves a hash, and nothing of what it said", async () => {
    await using t = await signedRoom(A_DAY);
    await obeyed(t, await t.signed({ headers: { "Message-ID": "<canary@example.com>" } }));
    const keys = await keysOf(t);
    expect(keys).toMatchObject([{ inbox_id: t.inbox.id, authority: "owner", vouched: 1 }]);
    expect(keys[0]?.key_hash.byteLength).toBe(16);
    expect(Buffer.from(keys[0]?.key_hash ?? []).toString("latin1")).not.toContain("canary");
  });

  test("goes for good with its inbox, and with its account", async () => {
    await using t = await signedRoom(A_DAY);
    await obeyed(t, await t.signed());
    const { body: other } = await t.owner.post("/inboxes", { retention_days: 1 });
    await t.again(await t.signed({ to: other.address }), other.address);
    await t.drain();
    await pass(t, 3);
    expect(await keysOf(t)).toHaveLength(2);
    await t.owner.delete(`/inboxes/${t.inbox.id}`);
    expect(await keysOf(t)).toMatchObject([{ inbox_id: other.id }]);
    const gone = await t.request("/auth/account", {
      method: "DELETE",
      headers: { "x-api-key": t.owner.key, "content-type": "application/json" },
      body: JSON.stringify({ confirm: "ada@example.com" }),
    });
    expect(gone.status).toBe(204);
    await t.drain();
    expect(await keysOf(t)).toEqual([]);
  });

  test("does not stand in for the owner's if it was another's, or altered", async () => {
    await using t = await signedRoom(A_DAY);
    const raw = await t.signed();
    expect(await t.again(altered(raw))).toStartWith("250");
    await t.drain();
    await pass(t, 3);
    expect(await keysOf(t)).toMatchObject([{ authority: "stranger", vouched: 0 }]);
    await obeyed(t, raw);
    expect(await keysOf(t)).toMatchObject([{ authority: "owner", vouched: 1 }]);
    expect(await t.again(altered(raw))).toStartWith("250");
    expect(await t.again(raw)).toStartWith("250");
    await t.drain();
    expect(t.model.requests).toHaveLength(2);
  });

  test("is not known where a cap left it out: nothing was done for it", async () => {
    await using t = await signedRoom({ ...A_DAY, config: { limits: { replies_per_sender_hour: 1 } } });
    await t.again(await t.signed());
    await t.again(await t.signed());
    expect(await t.newest()).toMatchObject({ state: "skipped", reason: "loop_cap" });
    await t.drain();
    await pass(t, 3);
    expect(await keysOf(t)).toHaveLength(1);
  });

  test("is another one, as before, when its author's own server sends it after seven days", async () => {
    await using t = await mailroom({ inbox: { retention_days: 1 } });
    const mail = { headers: { "Message-ID": "<same@example.com>" }, text: "Say hello." };
    await t.send(mail);
    await t.drain();
    await pass(t, 3);
    await t.send(mail);
    await t.drain();
    expect(t.model.requests).toHaveLength(1);
    await pass(t, 5);
    await t.send(mail);
    await t.drain();
    expect(t.model.requests).toHaveLength(2);
  });

  test.each([
    ["a listed sender", { allowlist_senders: ["bob@example.org"] }],
    ["a stranger", {}],
  ])("of %s is known as well", async (_who, inbox) => {
    await using t = await signedRoom({ inbox: { ...inbox, retention_days: 1 } });
    const raw = await t.signed({ from: BOB });
    await t.again(raw);
    await t.drain();
    await pass(t, 3);
    await t.again(raw);
    await t.drain();
    expect(t.model.requests).toHaveLength(1);
    expect(await t.activity()).toMatchObject([{ reason: "duplicate", mails: 1 }]);
  });
});

describe("a mail that failed, and of which the message has been deleted,", () => {
  const failing = async (options: Parameters<typeof signedRoom>[0] = A_DAY) => {
    const t = await signedRoom(options);
    t.model.fault = "unauthorized";
    return t;
  };
  /** Hands it in as often, and then has what became of it deleted; gives how often it has run in all. */
  const runsAfter = async (t: SignedRoom, raw: Buffer, times: number): Promise<number> => {
    for (let count = 0; count < times; count += 1) {
      expect(await t.again(raw)).toStartWith("250");
      await t.drain();
    }
    await pass(t, 3);
    // A message that a letter of the next day was about goes once that has gone.
    await purge(t);
    expect((await t.activity()).filter(({ status }) => status === "failed")).toEqual([]);
    return t.model.requests.length;
  };

  test.each([
    ["the owner", ADA, {}],
    ["a listed sender", BOB, { allowlist_senders: ["bob@example.org"] }],
    ["a stranger", BOB, {}],
  ])("of %s is tried no oftener than if it were still there", async (_who, from, inbox) => {
    await using t = await failing({ inbox: { ...inbox, retention_days: 1 } });
    const raw = await t.signed({ from });
    const each = await runsAfter(t, raw, 1);
    expect(each).toBeGreaterThan(0);
    expect(await runsAfter(t, raw, 1)).toBe(2 * each);
    expect(await runsAfter(t, raw, 5)).toBe(3 * each);
    expect(await runsAfter(t, raw, 5)).toBe(3 * each);
    expect(await t.again(raw)).toStartWith("250");
    expect(await t.activity()).toMatchObject([{ status: "rejected", reason: "duplicate", mails: 1 }]);
  });

  test("may be sent again, and is a duplicate once it has succeeded", async () => {
    await using t = await failing();
    const raw = await t.signed();
    await runsAfter(t, raw, 2);
    t.model.fault = "none";
    const before = t.model.requests.length;
    expect(await runsAfter(t, raw, 3)).toBe(before + 1);
    expect(await runsAfter(t, raw, 3)).toBe(before + 1);
  });

  test("does not use up the tries of the real one if it was altered", async () => {
    await using t = await failing();
    const raw = await t.signed();
    const each = (await runsAfter(t, altered(raw), 5)) / 3;
    expect(await runsAfter(t, raw, 2)).toBe(5 * each);
    expect(await runsAfter(t, altered(raw), 5)).toBe(5 * each);
    expect(await runsAfter(t, raw, 5)).toBe(6 * each);
    expect(await keysOf(t)).toHaveLength(3);
    expect(await keysOf(t)).toEqual(
      Array.from({ length: 3 }, () => expect.objectContaining({ authority: "owner", vouched: 1 })),
    );
  });

  test("is forgotten when its date is too old to be obeyed", async () => {
    await using t = await failing();
    await runsAfter(t, await t.signed(), 3);
    expect(await keysOf(t)).toHaveLength(3);
    await pass(t, 367);
    expect(await keysOf(t)).toEqual([]);
  });

  test("is not tried again and again by its author's own server beyond what it would be otherwise", async () => {
    await using t = await failing();
    const raw = await t.signed();
    const each = await runsAfter(t, raw, 1);
    expect(await straight(t, raw)).toStartWith("250");
    await t.drain();
    expect(t.model.requests).toHaveLength(2 * each);
    await pass(t, 3);
    expect(await runsAfter(t, raw, 5)).toBe(3 * each);
    expect(await straight(t, raw)).toStartWith("250");
    await t.drain();
    expect(t.model.requests).toHaveLength(4 * each);
  });
});

describe("the signed date of a mail that is not direct", () => {
  const days = (count: number) => (t: SignedRoom) =>
    new Date(t.clock.now() + count * 86_400_000).toUTCString().replace("GMT", "+0000");

  test.each<[string, (t: SignedRoom) => string, obeyed: boolean]>([
    ["today", days(0), true],
    ["364 days old", days(-364), true],
    ["366 days old", days(-366), false],
    ["20 years old", days(-7_300), false],
    ["some hours ahead", days(0.9), true],
    ["two days ahead", days(2), false],
    ["of the year 9999", () => "Fri, 31 Dec 9999 10:00:00 +0000", false],
    ["none at all", () => "", false],
    ["no date", () => "yesterday", false],
    ["without a zone", () => "15 Jan 2026 12:00:00", false],
    ["a year alone", () => "2026", false],
    ["in the form of the web", () => "2026-01-15T12:00:00Z", false],
    ["with a comment", () => "Thu, 15 Jan 2026 13:00:00 +0100 (CET)", true],
    ["of an old program", () => "15 Jan 2026 12:00 GMT", true],
    ["in a comment only", () => "(15 Jan 2026 12:00:00 +0000)", false],
  ])("%s", async (_what, date, isObeyed) => {
    await using t = await signedRoom();
    expect(await t.again(await t.signed({ headers: { Date: date(t) } }))).toStartWith("250");
    const instruction = await t.instruction();
    if (isObeyed) expect(instruction).toBe("Say hello.");
    else {
      expect(instruction).toMatch(STANDING);
      expect(JSON.stringify((await t.newest()).steps)).toContain("its Date is missing, ahead of the clock");
    }
  });

  test("that is missing, as a field that nobody signed can be taken out, is no date", async () => {
    await using t = await signedRoom();
    const raw = rawMail({ from: ADA, to: t.inbox.address, text: "Say hello." }).toString("latin1");
    const without = Buffer.from(raw.replace(/^Date: .*\r\n/m, ""), "latin1");
    expect(await t.again(await signedBy("example.com", without))).toStartWith("250");
    expect(await t.instruction()).toMatch(STANDING);
  });

  test("does not matter where the mail comes from its author's own server", async () => {
    await using t = await mailroom();
    await t.send({ from: ADA, text: "Say hello.", headers: { Date: "Fri, 03 May 1996 10:00:00 +0000" } });
    await t.drain();
    expect(await t.newest()).toMatchObject({ authority: "owner", vouched: 1, state: "done" });
  });
});

test("keys are looked through by their age and forgotten in turns", async () => {
  await using t = await signedRoom();
  const created = t.app.now() - 367 * 86_400;
  const row = { inbox_id: t.inbox.id, authority: "owner", vouched: 1 } as const;
  for (let count = 0; count < 120; count += 1)
    await t.app.db
      .insertInto("mail_keys")
      .values({ ...row, key_hash: Buffer.alloc(16, count), created })
      .execute();
  const young = { ...row, key_hash: Buffer.alloc(16, 200), created: t.app.now() - 365 * 86_400 };
  await t.app.db.insertInto("mail_keys").values(young).execute();
  await purge(t);
  expect(await keysOf(t)).toHaveLength(1);
});
