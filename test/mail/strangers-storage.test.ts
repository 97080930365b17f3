import { createHmac } from "node:crypto";
import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import type { ConfigOverrides } from "../../src/config/config.ts";
import type { Caller } from "../support/app.ts";
import {
  freshId,
  type Mailroom,
  mailroom,
  READS_ANYBODY,
  type RoomMail,
  type RoomOptions,
} from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { signedRoom } from "../support/signed-room.ts";
import { smtpClient } from "../support/smtp-client.ts";
import { MB } from "../../src/lib/sizes.ts";

/** Four fifths of a plan that stores 1 MB. */
const SHARE = Math.floor(0.8 * MB);
const EVE = "Eve <eve@example.net>";
const NO_LIMITS = {
  replies_per_sender_hour: 0,
  replies_per_sender_day: 0,
  same_body_per_hour: 0,
  inbound_per_sender_hour: 0,
  inbound_per_sender_day: 0,
};
const FOR_STRANGERS = "has no room left for mail of senders whom its owner has not listed";

function room(config: ConfigOverrides = {}, options: RoomOptions = {}): Promise<Mailroom> {
  const small = { plans: { team: { storage_mb: 1 } }, limits: NO_LIMITS };
  return mailroom({ config: { ...small, ...config }, model: { reply: () => "ok" }, ...options });
}

async function stored(caller: Caller): Promise<number> {
  return (await caller.get("/usage")).body.storage.bytes;
}

/** Fills an account with a call of its own until no more than `free` bytes of its bound are free. */
async function fillTo(caller: Caller, bytes: number): Promise<void> {
  const missing = bytes - (await stored(caller)) - 2_000;
  const data = Buffer.alloc(missing, "x").toString("base64");
  const attachments = [{ filename: "a.txt", content_type: "text/plain", data }];
  const { body } = await caller.post("/v1/messages", { instruction: "Keep it", attachments });
  expect(body.status).toBe("done");
}

function words(bytes: number): string {
  return "word ".repeat(bytes / 5);
}

async function rows(at: Mailroom): Promise<{ mails: number; jobs: number }> {
  const { db } = at.app;
  const mails = await db.selectFrom("raw_mails").select("id").execute();
  const jobs = await db.selectFrom("jobs").select("id").where("kind", "=", "route_message").execute();
  return { mails: mails.length, jobs: jobs.length };
}

/** A mail without its size announced, as whoever wants to use up the room would send it. */
function unannounced(at: Mailroom, mail: RoomMail): Promise<string> {
  return at.send({ from: EVE, ...mail });
}

/** A mail with its size announced; the answers to each RCPT, and the last one. */
async function announced(at: Mailroom, { from = EVE, rcpt = at.inbox.address, ...mail }: RoomMail) {
  const raw = mail.raw ?? rawMail({ to: at.inbox.address, ...freshId(), ...mail, from });
  await using client = await smtpClient(at.door);
  await client.say("EHLO client.example");
  await client.say(`MAIL FROM:<${/<(.*)>/.exec(from)?.[1] ?? from}> SIZE=${raw.byteLength}`);
  const each: string[] = [];
  for (const to of [rcpt].flat()) each.push(await client.say(`RCPT TO:<${to}>`));
  if (!each.some((reply) => reply.startsWith("250"))) return { each, last: each.at(-1) ?? "" };
  await client.say("DATA");
  client.write(raw);
  return { each, last: await client.say("\r\n.") };
}

describe("mail of strangers", () => {
  test("fills four fifths of an account at most, and the owner's own mail still has room", async () => {
    await using at = await room();
    const answers: string[] = [];
    for (let count = 0; count < 12; count++)
      answers.push(await unannounced(at, { text: `${count} ${words(99_000)}` }));
    const taken = answers.filter((answer) => answer.startsWith("250"));
    expect(taken).toHaveLength(Math.floor(SHARE / 100_000));
    expect(answers.at(-1)).toStartWith("452 4.2.2 ");
    expect(answers.at(-1)).toContain(FOR_STRANGERS);
    const before = await stored(at.owner);
    expect(before).toBeLessThanOrEqual(SHARE);
    expect(await rows(at)).toEqual({ mails: taken.length, jobs: taken.length });
    // Whatever the envelope says: what counts is who wrote it.
    for (const mail_from of ["ada@example.com", "bounces@lists.example"])
      expect(await at.send({ mail_from, text: words(80_000) })).toStartWith("250 ");
    expect(await unannounced(at, { mail_from: "ada@example.com", text: words(10_000) })).toStartWith("452 ");
    expect(await at.send({ text: words(120_000) })).toStartWith("452 4.2.2 ");
    expect(await stored(at.owner)).toBeLessThanOrEqual(MB);
  });

  test("that finds no room is told of apart from the owner's own that finds none on the same day", async () => {
    await using at = await room();
    await fillTo(at.owner, SHARE);
    const subjects = async () => {
      await at.drain();
      const letters = (await at.outgoing()).filter(({ kind }) => kind === "notice");
      const read = await Promise.all(letters.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
      return read.map(({ text = "" }) => text.includes("senders whom you have not listed may fill"));
    };
    for (let again = 0; again < 2; again++)
      expect(await unannounced(at, { text: words(50_000) })).toStartWith("452 ");
    expect(await subjects()).toEqual([true]);
    for (let again = 0; again < 2; again++)
      expect(await at.send({ text: words(400_000) })).toStartWith("452 ");
    expect(await subjects()).toEqual([true, false]);
  });

  test("leaves a row and a letter that say why and what to do, and counts against no limit", async () => {
    await using at = await room({ limits: { ...NO_LIMITS, inbound_per_sender_hour: 1 } });
    await fillTo(at.owner, SHARE);
    for (let again = 0; again < 3; again++)
      expect(await unannounced(at, { subject: "Offer", text: words(50_000) })).toStartWith("452 4.2.2 ");
    const shown = (await at.activity()).filter(({ reason }) => reason === "storage_full");
    expect(shown).toMatchObject([{ status: "rejected", sender: "eve@example.net", subject: "Offer" }]);
    expect(shown[0].error).toContain(FOR_STRANGERS);
    await at.drain();
    const [letter, ...others] = (await at.outgoing()).filter(({ kind }) => kind === "notice");
    expect(others).toEqual([]);
    const { subject, text } = await simpleParser(Buffer.from(letter?.raw ?? []));
    expect(subject).toBe("A mail did not fit into your Mailwright storage");
    expect(text).toContain("80 % of the 1 MB that you may store");
    expect(text).toContain("Days to keep content");
    expect(text).toContain("plans.team.storage_mb");
    await at.app.db.deleteFrom("attachments").execute();
    await at.app.db.updateTable("account_storage").set({ bytes: 0 }).execute();
    expect(await unannounced(at, { text: words(50_000) })).toStartWith("250 ");
  });

  test("is everybody's but that of the owner and of listed senders", async () => {
    await using at = await room({}, { inbox: { allowlist_senders: ["eve@example.net"] } });
    await fillTo(at.owner, SHARE);
    expect(await unannounced(at, { text: words(90_000) })).toStartWith("250 ");
    expect(await at.send({ text: words(50_000) })).toStartWith("250 ");
  });

  test("is what somebody sends again of the owner's, too", async () => {
    const small = { plans: { team: { storage_mb: 1 } }, limits: NO_LIMITS };
    await using at = await signedRoom({ config: small });
    await fillTo(at.owner, SHARE);
    const old = await at.signed({
      text: words(50_000),
      headers: { Date: "Thu, 15 Jan 2015 10:00:00 +0000" },
    });
    expect(await at.again(old)).toStartWith("452 4.2.2 ");
    expect(await at.again(await at.signed({ text: words(50_000) }))).toStartWith("250 ");
  });

  test("is measured when it is there, not when its session began", async () => {
    await using at = await room();
    await using client = await smtpClient(at.door);
    await client.script([
      ["EHLO client.example", "250"],
      ["MAIL FROM:<eve@example.net> SIZE=60000", "250"],
      [`RCPT TO:<${at.inbox.address}>`, "250"],
    ]);
    await fillTo(at.owner, SHARE);
    await client.script([["DATA", "354"]]);
    client.write(rawMail({ from: EVE, to: at.inbox.address, text: words(50_000) }));
    expect(await client.say("\r\n.")).toStartWith("452 4.2.2 ");
    expect(await rows(at)).toEqual({ mails: 0, jobs: 0 });
  });

  test("that is next to nothing costs no second look at the room", async () => {
    await using at = await room({ plans: { team: { storage_mb: 1_000 } } });
    await using client = await smtpClient(at.door);
    await client.script([
      ["EHLO client.example", "250"],
      ["MAIL FROM:<eve@example.net>", "250"],
      [`RCPT TO:<${at.inbox.address}>`, "250"],
    ]);
    await at.app.db
      .updateTable("account_storage")
      .set({ bytes: 2_000 * MB })
      .execute();
    await client.script([["DATA", "354"]]);
    client.write(rawMail({ from: EVE, to: at.inbox.address, text: words(50_000) }));
    expect(await client.say("\r\n.")).toStartWith("250 ");
  });

  test("that needs no room is taken as ever: machines' and what has been here before", async () => {
    await using at = await room();
    const raw = rawMail({ from: EVE, to: at.inbox.address, ...freshId(), text: words(50_000) });
    expect(await at.send({ from: EVE, raw })).toStartWith("250 ");
    await fillTo(at.owner, SHARE);
    expect(await at.send({ from: EVE, raw })).toStartWith("250 ");
    const headers = { ...freshId().headers, "Auto-Submitted": "auto-replied" };
    expect(await unannounced(at, { text: words(50_000), headers })).toStartWith("250 ");
    expect((await rows(at)).mails).toBe(1);
  });

  test("to the administrator has its bound there", async () => {
    await using at = await room();
    await fillTo(at.owner, SHARE);
    const mail = { from: EVE, rcpt: "postmaster@mw.test", text: words(50_000) };
    expect(await at.send(mail)).toStartWith("452 4.2.2 ");
    expect((await at.outgoing()).filter(({ envelope_to }) => envelope_to === "ada@example.com")).toEqual([]);
    await at.app.db.updateTable("account_storage").set({ bytes: 0 }).execute();
    expect(await at.send(mail)).toStartWith("250 ");
  });
});

describe("a mail for several, one of whom has no room for it", () => {
  test("is taken for nobody, and when it comes again for those who have room, once", async () => {
    await using at = await room({ limits: { ...NO_LIMITS, inbound_per_sender_hour: 1 } });
    const bob = await at.as("bob@example.com");
    const { body: desk } = await bob.post("/inboxes", { label: "Bob's", ...READS_ANYBODY });
    await fillTo(at.owner, SHARE);
    const raw = rawMail({ from: EVE, to: at.inbox.address, ...freshId(), text: words(50_000) });
    const mail = { raw, rcpt: [at.inbox.address, desk.address] };
    const first = await announced(at, mail);
    expect(first.each.map((reply) => reply.slice(0, 3))).toEqual(["250", "250"]);
    expect(first.last).toStartWith(`452 4.2.2 The account of ${at.inbox.address} ${FOR_STRANGERS}`);
    expect(await rows(at)).toEqual({ mails: 0, jobs: 0 });
    expect((await bob.get("/messages")).body.items).toEqual([]);
    const second = await announced(at, mail);
    expect(second.each[0]).toStartWith("452 4.2.2 ");
    expect(second.each[0]).toContain(FOR_STRANGERS);
    expect(second.each[1]).toStartWith("250 ");
    expect(second.last).toStartWith("250 ");
    // Its server comes again for the one who is left.
    expect((await announced(at, { raw, rcpt: at.inbox.address })).last).toStartWith("452 ");
    await at.app.db.updateTable("account_storage").set({ bytes: 0 }).execute();
    expect((await announced(at, { raw, rcpt: at.inbox.address })).last).toStartWith("250 ");
    await at.drain();
    expect((await bob.get("/messages")).body.items).toMatchObject([{ status: "done" }]);
    const own = (await at.activity()).filter(({ source, status }) => source === "email" && status === "done");
    expect(own).toHaveLength(1);
  });

  test("is divided so where no size is announced, and what somebody else was told says nothing of the owner", async () => {
    await using at = await room();
    const bob = await at.as("bob@example.com");
    const { body: desk } = await bob.post("/inboxes", { label: "Bob's" });
    await fillTo(at.owner, SHARE);
    const to_both = { mail_from: "ada@example.com", rcpt: [at.inbox.address, desk.address] };
    expect(await unannounced(at, { ...to_both, text: words(50_000) })).toStartWith("452 ");
    // In the owner's name only the whole bound is refused at RCPT.
    expect((await announced(at, { from: "Ada <ada@example.com>", text: words(50_000) })).last).toStartWith(
      "250 ",
    );
    const raw = rawMail({ from: EVE, to: at.inbox.address, ...freshId(), text: words(50_000) });
    expect(await unannounced(at, { raw, rcpt: to_both.rcpt })).toStartWith("452 ");
    await using client = await smtpClient(at.door);
    await client.script([
      ["EHLO client.example", "250"],
      ["MAIL FROM:<eve@example.net>", "250"],
      [`RCPT TO:<${at.inbox.address}>`, "452 4.2.2"],
      [`RCPT TO:<${desk.address}>`, "250"],
      ["DATA", "354"],
    ]);
    client.write(raw);
    expect(await client.say("\r\n.")).toStartWith("250 ");
    expect((await bob.get("/messages")).body.items).toHaveLength(1);
  });

  test("is divided so when it is handed in over HTTP", async () => {
    const secret = "0123456789abcdef0123456789abcdef";
    await using at = await room({ inbound: { secret } });
    const bob = await at.as("bob@example.com");
    const { body: desk } = await bob.post("/inboxes", { label: "Bob's", ...READS_ANYBODY });
    await fillTo(at.owner, SHARE);
    const raw = rawMail({ from: EVE, to: at.inbox.address, text: words(50_000) });
    const to = [at.inbox.address, desk.address].map((one) => `rcpt_to=${encodeURIComponent(one)}`).join("&");
    const envelope = `mail_from=eve%40example.net&${to}`;
    const time = at.app.now();
    const v1 = createHmac("sha256", secret).update(`${time}.${envelope}.`).update(raw).digest("hex");
    const hand_in = () =>
      at.request("/inbound/raw", {
        method: "POST",
        headers: {
          "content-type": "message/rfc822",
          "service-envelope": envelope,
          "service-signature": `t=${time},v1=${v1}`,
        },
        body: raw,
      });
    const first = await hand_in();
    expect([first.status, first.body.code]).toEqual([503, "unavailable"]);
    expect(first.body.detail).toContain(FOR_STRANGERS);
    expect(await rows(at)).toEqual({ mails: 0, jobs: 0 });
    const { status, body } = await hand_in();
    expect(status).toBe(200);
    expect(body.recipients).toMatchObject([
      { recipient: at.inbox.address, status: "refused", code: 452, enhanced: "4.2.2" },
      { recipient: desk.address, status: "accepted", code: 250 },
    ]);
  });
});
