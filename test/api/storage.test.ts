import { createHmac } from "node:crypto";
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { simpleParser } from "mailparser";
import { longestUncounted, recountStorage } from "../../src/db/account-storage.ts";
import { purgeLater } from "../../src/operation/retention/purge.ts";
import type { Caller, TestApp } from "../support/app.ts";
import { type Mailroom, mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { smtpClient } from "../support/smtp-client.ts";
import { seedFrom } from "../support/chance.ts";
import { MB } from "../../src/lib/sizes.ts";

const SEED = seedFrom("FUZZ_SEED", "storage");
const ONE_MB = { plans: { team: { storage_mb: 1 } } };
/** An answer is to be next to nothing of what it stores. */
const BRIEF = { reply: () => "ok" };
const NO_LIMITS = {
  replies_per_conversation_hour: 0,
  replies_per_sender_hour: 0,
  replies_per_sender_day: 0,
  same_body_per_hour: 0,
  inbound_per_sender_hour: 0,
  inbound_per_sender_day: 0,
};

/** A call with a file of so many bytes. */
function bring(caller: Caller, bytes: number, more: Record<string, unknown> = {}) {
  const data = Buffer.alloc(bytes, "x").toString("base64");
  const attachments = [{ filename: "a.txt", content_type: "text/plain", data }];
  return caller.post("/v1/messages", { instruction: "Sum up", attachments, ...more });
}

async function stored(caller: Caller): Promise<number> {
  return (await caller.get("/usage")).body.storage.bytes;
}

async function notices(room: Mailroom) {
  return (await room.outgoing()).filter(({ kind }) => kind === "notice");
}

/** What is there, row by row, as nobody would count it who has more to do. */
async function trulyStored(t: TestApp, user_id: string): Promise<number> {
  const { db } = t.app;
  const bytesOf = (text: string | null) => Buffer.byteLength(text ?? "");
  const messages = await db.selectFrom("messages").selectAll().where("user_id", "=", user_id).execute();
  const ids = new Set(messages.map(({ id }) => id));
  const mails = new Set(messages.map(({ raw_mail_id }) => raw_mail_id));
  const sum = (sizes: number[]) => sizes.reduce((all, size) => all + size, 0);
  const kept = {
    mails: await db.selectFrom("raw_mails").selectAll().execute(),
    files: await db.selectFrom("attachments").selectAll().execute(),
  };
  return sum([
    ...messages.flatMap(({ instruction, command, result, steps }) =>
      [instruction, command, result, steps].map(bytesOf),
    ),
    ...kept.mails.filter(({ id, purged_at }) => mails.has(id) && purged_at === null).map(({ size }) => size),
    ...kept.files
      .filter(({ message_id, purged_at }) => ids.has(message_id) && purged_at === null)
      .map(({ size }) => size),
    ...(await db.selectFrom("message_contents").selectAll().execute())
      .filter(({ message_id }) => ids.has(message_id))
      .map(({ content }) => bytesOf(content)),
    ...(await db.selectFrom("outgoing_mails").selectAll().where("user_id", "=", user_id).execute()).map(
      ({ raw }) => raw?.byteLength ?? 0,
    ),
    ...(await db.selectFrom("contexts").selectAll().where("user_id", "=", user_id).execute()).map(
      ({ body }) => bytesOf(body),
    ),
    ...(await db.selectFrom("context_versions").selectAll().where("user_id", "=", user_id).execute()).map(
      ({ body }) => bytesOf(body),
    ),
    ...(await db.selectFrom("events").selectAll().where("user_id", "=", user_id).execute()).map(({ body }) =>
      bytesOf(body),
    ),
  ]);
}

describe("what an account stores", () => {
  test("is shown with its limit, and grows by what a call brought along, failed or not", async () => {
    await using room = await mailroom({ model: { fault: "unauthorized" } });
    const { body: empty } = await room.owner.get("/usage?since=0&until=1");
    expect(empty.storage).toEqual({ bytes: 0, limit_bytes: 100_000 * MB });
    expect((await room.owner.get("/auth/me")).body.limits.storage_mb).toBe(100_000);
    const { body } = await bring(room.owner, 50_000, { content: "é".repeat(1_000) });
    expect([body.status, body.credits.charged]).toEqual(["failed", 0]);
    const bytes = await stored(room.owner);
    expect(bytes).toBeGreaterThanOrEqual(52_000 + "Sum up".length);
    expect(bytes).toBe(await trulyStored(room, room.owner.user.id));
  });

  test("has no limit where the plan says 0", async () => {
    await using room = await mailroom({ config: { plans: { team: { storage_mb: 0 } } } });
    expect((await room.owner.get("/usage")).body.storage.limit_bytes).toBeNull();
    expect((await bring(room.owner, 2 * MB)).body.status).toBe("done");
  });

  test("is counted right after whatever has happened", async () => {
    const config = {
      limits: NO_LIMITS,
      webhooks: { allow: ["127.0.0.1"] },
      retention: { raw_days: 2, content_days: 3, attachment_days: 4 },
      plans: { team: { history_days: 9, route_per_minute: 0, contexts: 1_000 } },
    };
    await using room = await mailroom({ config });
    const bob = await room.as("bob@example.com");
    const { body: desk } = await bob.post("/inboxes", { allowlist_senders: ["ada@example.com"] });
    // Who has an endpoint has events.
    const hook = await bob.post("/v1/webhooks", { url: "http://127.0.0.1:9/", event_types: ["*"] });
    expect(hook.status).toBe(201);
    await room.app.write((tx) => purgeLater(room.app, tx));
    const people = [room.owner, bob];
    const steps = stepsOf(room, { bob, address: desk.address });
    const names = fc.constantFrom(...(Object.keys(steps) as (keyof typeof steps)[]));
    const script = fc.array(fc.tuple(names, fc.integer({ min: 0, max: 40_000 }), fc.boolean()), {
      minLength: 70,
      maxLength: 70,
    });
    for (const [name, size, flag] of fc.sample(script, { seed: SEED, numRuns: 1 }).flat()) {
      await steps[name](size, flag);
      await room.drain();
      for (const { user } of people) {
        const { bytes } = await room.app.db
          .selectFrom("account_storage")
          .select("bytes")
          .where("user_id", "=", user.id)
          .executeTakeFirstOrThrow();
        expect([name, size, flag, user.email, bytes]).toEqual([
          name,
          size,
          flag,
          user.email,
          await trulyStored(room, user.id),
        ]);
      }
    }
    room.clock.advance("1d");
    // What is due to be purged by then goes first.
    await room.drain();
    const before = await stored(bob);
    expect((await room.owner.delete("/auth/account")).status).toBeLessThan(500);
    await room.drain();
    expect(await stored(bob)).toBe(before);
  });

  test("is counted anew by the hourly purge, one account each time, should it ever be wrong", async () => {
    await using room = await mailroom();
    await bring(room.owner, 5_000);
    const right = await stored(room.owner);
    await room.app.db.updateTable("account_storage").set({ bytes: 1 }).execute();
    await room.app.write((tx) => purgeLater(room.app, tx));
    room.clock.advance("1h");
    await room.drain();
    expect(await stored(room.owner)).toBe(right);
    await room.as("bob@example.com");
    expect(await longestUncounted(room.app.db)).not.toBe(room.owner.user.id);
    await recountStorage(room.app, room.owner.user.id);
    expect(await stored(room.owner)).toBe(right);
  });
});

/** Things that happen, of a size and in one of two ways. */
function stepsOf(room: Mailroom, { bob, address }: { bob: Caller; address: string }) {
  const pick = <T>(rows: T[], size: number): T | undefined => rows[size % Math.max(1, rows.length)];
  const text = (size: number) => "wörd ".repeat(size / 5);
  const messagesOf = async (caller: Caller) => (await caller.get("/messages?limit=100")).body.items;
  return {
    call: (size: number, flag: boolean) =>
      bring(room.owner, size, { content: text(size), instruction: flag ? "Sum up --private" : "Sum up" }),
    tools: (size: number) =>
      room.owner.post("/v1/messages", { instruction: "Sum up --attach=md", content: text(size) }),
    fault: async (size: number, flag: boolean) => {
      room.model.fault = "unauthorized";
      await bring(room.owner, size);
      if (flag) await room.send({ text: text(size) });
      await room.drain();
      room.model.fault = "none";
    },
    retry: async (size: number) => {
      const failed = (await messagesOf(room.owner)).filter(
        ({ status }: { status: string }) => status === "failed",
      );
      const chosen = pick<{ message_id: string }>(failed, size);
      if (chosen) await room.owner.post(`/messages/${chosen.message_id}/retry`);
    },
    mail: (size: number, flag: boolean) =>
      room.send({ text: text(size), rcpt: flag ? [room.inbox.address, address] : room.inbox.address }),
    hush: (size: number) => room.send({ text: `Sum up --private ${text(size)}` }),
    test: (_size: number, flag: boolean) =>
      (flag ? room.owner : bob).post(`/inboxes/${room.inbox.id}/test`, { content: "x" }),
    context: (size: number) =>
      bob.post("/contexts", { title: "A", kind: "knowledge", body: text(size) || "x" }),
    change: async (size: number, flag: boolean) => {
      const context = pick((await bob.get("/contexts")).body as { id: string }[], size);
      if (!context) return;
      if (flag) await bob.delete(`/contexts/${context.id}`);
      else await bob.patch(`/contexts/${context.id}`, { body: text(size) || "y" });
    },
    days: (_size: number, flag: boolean) => Promise.resolve(room.clock.advance(flag ? "1d" : "1h")),
  };
}

describe("an account that is full", () => {
  test("has its calls refused with what would mend it, nothing is kept of them, and its owner is told once", async () => {
    await using room = await mailroom({ config: ONE_MB, model: BRIEF });
    expect((await bring(room.owner, MB - 50_000)).body.status).toBe("done");
    const before = await stored(room.owner);
    const { status, body } = await bring(room.owner, 100_000);
    expect([status, body]).toMatchObject([
      507,
      {
        code: "storage_full",
        detail: "You may store 1 MB, of which 1 MB are used, so there is no room for the 0.1 MB of this.",
        fix: expect.stringMatching(/“Days to keep content”.*plans\.team\.storage_mb/),
        limit: MB,
        current: before,
      },
    ]);
    for (const more of [{ async: true }, { content: "x".repeat(60_000) }])
      expect((await bring(room.owner, 90_000, more)).status).toBe(507);
    expect(await stored(room.owner)).toBe(before);
    expect(await room.activity()).toHaveLength(1);
    // Whatever has room goes on: also what is read, and what needs next to nothing.
    expect((await room.owner.post("/v1/messages", { instruction: "Say hello" })).body.status).toBe("done");
    await room.drain();
    const [notice, ...others] = await notices(room);
    expect(others).toEqual([]);
    const { subject, text: folded } = await simpleParser(Buffer.from(notice?.raw ?? []));
    const text = folded?.replaceAll(/\s+/g, " ");
    expect(subject).toBe("A call did not fit into your Mailwright storage");
    expect(text).toMatch(/A call of 0\.1 MB was not taken: you may store 1 MB, and 0 MB of them are free/);
    expect(text).toContain("Whatever fits is still taken. A mail that does not fit is put off");
    expect(text).toContain("http://mw.test/app/inboxes");
    expect(text).toContain("Days to keep content");
    expect(text).toContain("plans.team.storage_mb");
    expect(text).not.toContain("PATCH");
    room.clock.advance("1d");
    await bring(room.owner, 100_000);
    await room.drain();
    expect(await notices(room)).toHaveLength(2);
  });

  test("has room again once what it stored is purged", async () => {
    await using room = await mailroom({
      config: { ...ONE_MB, retention: { attachment_days: 3 } },
      model: BRIEF,
    });
    await room.app.write((tx) => purgeLater(room.app, tx));
    await bring(room.owner, 900_000);
    expect((await bring(room.owner, 900_000)).status).toBe(507);
    for (let day = 0; day < 5; day++) {
      room.clock.advance("23h");
      await room.drain();
    }
    expect((await bring(room.owner, 900_000)).body.status).toBe("done");
  });

  test("cannot get round it by other doors: a retry, a test of an inbox, contexts", async () => {
    await using room = await mailroom({ config: ONE_MB, model: { fault: "unauthorized" } });
    const { body: failed } = await bring(room.owner, 600_000);
    expect((await room.owner.post(`/messages/${failed.message_id}/retry`)).body.code).toBe("storage_full");
    const { body: context } = await room.owner.post("/contexts", {
      title: "A",
      kind: "knowledge",
      body: "x",
    });
    const large = "x".repeat(262_000);
    await room.owner.post("/contexts", { title: "B", kind: "knowledge", body: large });
    for (const answer of [
      await room.owner.post("/contexts", { title: "C", kind: "knowledge", body: large }),
      await room.owner.patch(`/contexts/${context.id}`, { body: large }),
    ])
      expect([answer.status, answer.body.code]).toEqual([507, "storage_full"]);
    const room_left = MB - (await stored(room.owner)) - 5_000;
    await room.owner.post("/contexts", { title: "D", kind: "knowledge", body: "x".repeat(room_left) });
    const tested = await room.owner.post(`/inboxes/${room.inbox.id}/test`, { content: "x".repeat(9_000) });
    expect([tested.status, tested.body.code]).toEqual([507, "storage_full"]);
    // What makes it smaller is always possible.
    const [, other] = (await room.owner.get("/contexts")).body;
    expect((await room.owner.patch(`/contexts/${other.id}`, { body: "less" })).status).toBe(200);
    expect((await room.owner.patch(`/contexts/${context.id}`, { body: large })).status).toBe(200);
  });

  test("has mail put off at each RCPT, others get theirs, and the owner sees and hears of it", async () => {
    await using room = await mailroom({ config: { ...ONE_MB, limits: NO_LIMITS }, model: BRIEF });
    const bob = await room.as("bob@example.com");
    const { body: desk } = await bob.post("/inboxes", { allowlist_senders: ["ada@example.com"] });
    await bring(room.owner, MB - 5_000);
    const full = `RCPT TO:<${room.inbox.address}>`;
    await using client = await smtpClient(room.door);
    await client.say("EHLO client.example");
    await client.script([
      ["MAIL FROM:<ada@example.com> SIZE=10000", "250"],
      [
        full,
        "452 4.2.2 The account of this address has no room for the mail; its owner has been told, please try again later",
      ],
      [`RCPT TO:<${desk.address}>`, "250"],
      ["RSET", "250"],
      ["MAIL FROM:<ada@example.com> SIZE=1000", "250"],
      [full, "250"],
      ["RSET", "250"],
      // Nothing is known of its size, and there is some room.
      ["MAIL FROM:<ada@example.com>", "250"],
      [full, "250"],
      ["RSET", "250"],
    ]);
    // Once it is there, its size is known.
    expect(await room.send({ text: "x".repeat(9_000) })).toStartWith(
      `452 4.2.2 The account of ${room.inbox.address} has no room for the mail`,
    );
    expect(await room.app.db.selectFrom("raw_mails").select("id").execute()).toEqual([]);
    await room.app.db
      .updateTable("account_storage")
      .set({ bytes: MB + 1 })
      .where("user_id", "=", room.owner.user.id)
      .execute();
    for (let again = 0; again < 3; again++)
      expect(await room.send({ text: "One more" })).toStartWith("452 4.2.2");
    expect(await room.send({ text: "For both", rcpt: [room.inbox.address, desk.address] })).toStartWith(
      "452",
    );
    expect(await room.send({ text: "For Bob", rcpt: desk.address })).toStartWith("250");
    const shown = (await room.activity()).filter(({ reason }) => reason === "storage_full");
    expect(shown).toMatchObject([{ status: "rejected", sender: "ada@example.com" }]);
    await room.drain();
    const [notice, ...others] = await notices(room);
    expect(others).toEqual([]);
    const { subject, text: folded } = await simpleParser(Buffer.from(notice?.raw ?? []));
    const text = folded?.replaceAll(/\s+/g, " ");
    expect(subject).toBe("A mail did not fit into your Mailwright storage");
    expect(text).toContain("A mail of 0.1 MB was not taken");
  });

  test.each([
    [
      "is told of in the next one, though what came before it has room by then",
      700_000,
      "A call of 0.7 MB was",
    ],
    ["is told of no more once there is room for it", 60_000, undefined],
  ])("and gets a letter about it: what finds no room after it %s", async (_what, bytes, words) => {
    await using room = await mailroom({ config: ONE_MB, model: BRIEF });
    await bring(room.owner, 500_000);
    await bring(room.owner, MB - 550_000);
    const refuse = async (size: number): Promise<void> => {
      expect((await bring(room.owner, size)).status).toBe(507);
      await room.drain();
      room.clock.advance("2h");
    };
    for (const size of [100_000, 60_000, bytes]) await refuse(size);
    const [oldest] = await room.app.db.selectFrom("messages").select("id").orderBy("id").execute();
    expect((await room.owner.delete(`/messages/${oldest?.id}`)).status).toBe(204);
    room.clock.advance("1d");
    await room.drain();
    await room.app.db
      .deleteFrom("attachments")
      .where("message_id", "=", oldest?.id ?? "")
      .execute();
    const letters = await notices(room);
    const read = await Promise.all(letters.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
    expect(read[0]?.text?.replaceAll(/\s+/g, " ")).toContain("A call of 0.1 MB was not taken");
    expect(read).toHaveLength(words === undefined ? 1 : 2);
    if (words !== undefined) expect(read[1]?.text?.replaceAll(/\s+/g, " ")).toContain(words);
  });

  test("is told nothing when there is room again before the notice is written", async () => {
    await using room = await mailroom({ config: ONE_MB, model: BRIEF });
    await bring(room.owner, 600_000);
    expect((await bring(room.owner, 600_000)).status).toBe(507);
    await room.app.db.deleteFrom("attachments").execute();
    await room.drain();
    expect(await notices(room)).toEqual([]);
  });

  test("has mail that is handed in over HTTP put off too", async () => {
    const secret = "0123456789abcdef0123456789abcdef";
    await using room = await mailroom({ config: { ...ONE_MB, inbound: { secret } }, model: BRIEF });
    await bring(room.owner, MB - 5_000);
    const mail = rawMail({ from: "Ada <ada@example.com>", to: room.inbox.address, text: "x".repeat(9_000) });
    const envelope = `rcpt_to=${encodeURIComponent(room.inbox.address)}&mail_from=ada%40example.com`;
    const time = room.app.now();
    const v1 = createHmac("sha256", secret).update(`${time}.${envelope}.`).update(mail).digest("hex");
    const { status, headers, body } = await room.request("/inbound/raw", {
      method: "POST",
      headers: {
        "content-type": "message/rfc822",
        "service-envelope": envelope,
        "service-signature": `t=${time},v1=${v1}`,
      },
      body: mail,
    });
    expect([status, body.code, headers.get("retry-after")]).toEqual([503, "unavailable", "120"]);
    expect(body.detail).toContain("has no room for the mail");
    expect(await room.app.db.selectFrom("raw_mails").select("id").execute()).toEqual([]);
  });
});
