import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { freeLocalPart } from "../../src/resources/inboxes/addresses.ts";
import { type Answer, testApp } from "../support/app.ts";
import { freshId, mailroom } from "../support/mailroom.ts";
import { deliver, smtpClient } from "../support/smtp-client.ts";
import { rawMail } from "../support/mails.ts";
import { readVcard } from "../support/vcard.ts";
import { deskOf } from "./desk.ts";

describe("a new address", () => {
  test("is never one that an inbox has or ever had", async () => {
    await using t = await testApp();
    const { ada, inbox_id } = await deskOf(t);
    const [{ local_part: retired }] = (await ada.get("/inboxes")).body;
    const { local_part: taken } = (await ada.post(`/inboxes/${inbox_id}/rotate`)).body;
    const made: string[] = [];
    const parts = [taken, retired, taken, "fresh"];
    const local_part = await freeLocalPart(t.app.db, { prefix: "p", domain: "mw.test" }, (prefix) => {
      made.push(String(prefix));
      return parts.shift() ?? "";
    });
    expect([local_part, made]).toEqual(["fresh", ["p", "p", "p", "p"]]);
    // Elsewhere it is another address.
    const wanted = { prefix: null, domain: "other.example" };
    expect(await freeLocalPart(t.app.db, wanted, () => taken)).toBe(taken);
  });

  test("that cannot be found is a fault, not an endless search", async () => {
    await using t = await testApp();
    const { ada } = await deskOf(t);
    const [{ local_part }] = (await ada.get("/inboxes")).body;
    const search = freeLocalPart(t.app.db, { prefix: null, domain: "mw.test" }, () => local_part);
    await expect(search).rejects.toThrow("No free address");
  });
});

describe("rotating an address", () => {
  test("changes the token and nothing else", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const { body: made } = await ada.post("/inboxes", {
      label: "Reports",
      allowlist_senders: ["bob@example.com"],
      retention_days: 7,
    });
    t.clock.advance("5m");
    const { status, body } = await ada.post(`/inboxes/${made.id}/rotate`);
    expect(status).toBe(200);
    expect(body.local_part).toMatch(/^reports-[a-z2-9]{12}$/);
    expect(body.local_part).not.toBe(made.local_part);
    const { local_part } = body;
    expect(body).toEqual({ ...made, local_part, address: `${local_part}@mw.test`, updated: t.app.now() });
    expect((await ada.get("/inboxes")).body).toEqual([body]);
    expect(await t.app.db.selectFrom("retired_addresses").selectAll().execute()).toEqual([
      { address: made.address, retired_at: t.app.now() },
    ]);
  });

  test("has mail to the old one refused, that to its reply addresses too, and mail to the new one worked on", async () => {
    await using room = await mailroom();
    await room.send({});
    await room.drain();
    const [reply] = await room.outgoing();
    const parsed = await simpleParser(Buffer.from(reply?.raw ?? []));
    const replyTo = parsed.replyTo?.value[0]?.address ?? "";
    expect(replyTo).toContain("+c_");
    const { body } = await room.owner.post(`/inboxes/${room.inbox.id}/rotate`);
    for (const to of [room.inbox.address, room.inbox.address.toUpperCase(), replyTo])
      expect(await room.send({ rcpt: to })).toStartWith("550 5.1.1 ");
    expect(await room.send({ rcpt: body.address, to: body.address })).toStartWith("250 ");
    // Its token is dead at the new address as well: the mail begins a thread of its own.
    const moved = replyTo.replace(/^[^+]+/, body.local_part);
    expect(await room.send({ rcpt: moved, to: moved })).toStartWith("250 ");
    await room.drain();
    const messages = await room.activity();
    expect(messages.map(({ status }) => status)).toEqual(["done", "done", "done"]);
    expect(new Set(messages.map(({ conversation_id }) => conversation_id)).size).toBe(3);
  });

  test("has a mail refused that was on its way to the old one", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250"],
      ["MAIL FROM:<ada@example.com>", "250"],
      [`RCPT TO:<${room.inbox.address}>`, "250"],
      ["DATA", "354"],
    ]);
    expect((await room.owner.post(`/inboxes/${room.inbox.id}/rotate`)).status).toBe(200);
    client.write(rawMail({ to: room.inbox.address, from: "ada@example.com" }));
    expect(await client.say(".")).toStartWith("550 5.1.1 ");
    expect(await room.activity()).toEqual([]);
  });

  test("does not tell the new one to strangers whose mail is still waiting", async () => {
    await using room = await mailroom();
    await room.send({ from: "eve@stranger.example", ...freshId() });
    await room.send(freshId());
    const { body } = await room.owner.post(`/inboxes/${room.inbox.id}/rotate`);
    await room.drain();
    expect((await room.activity()).map(({ status }) => status)).toEqual(["done", "done"]);
    const [answer, ...others] = await room.outgoing();
    expect([answer?.envelope_to, others]).toEqual(["ada@example.com", []]);
    expect(Buffer.from(answer?.raw ?? []).toString()).toContain(body.address);
  });

  test("twice at the same time retires both old addresses and leaves one", async () => {
    await using t = await testApp();
    const { ada, inbox_id } = await deskOf(t);
    const [{ address }] = (await ada.get("/inboxes")).body;
    const answers = await Promise.all([1, 2].map(() => ada.post(`/inboxes/${inbox_id}/rotate`)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const [now] = (await ada.get("/inboxes")).body;
    const retired = await t.app.db.selectFrom("retired_addresses").select("address").execute();
    const given = [address, ...answers.map(({ body }) => body.address)];
    expect(new Set(given).size).toBe(3);
    expect(new Set([...retired.map((row) => row.address), now.address])).toEqual(new Set(given));
    expect(retired).toHaveLength(2);
  });

  test("is possible ten times a day, for each inbox", async () => {
    await using t = await testApp();
    const { ada, inbox_id } = await deskOf(t);
    const rotate = (id: string): Promise<Answer> => ada.post(`/inboxes/${id}/rotate`);
    for (let count = 0; count < 10; count++) expect((await rotate(inbox_id)).status).toBe(200);
    const [before] = (await ada.get("/inboxes")).body;
    const refused = await rotate(inbox_id);
    expect([refused.status, refused.body.code]).toEqual([429, "rate_limited"]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await ada.get("/inboxes")).body).toEqual([before]);
    const other = await ada.post("/inboxes", {});
    expect((await rotate(other.body.id)).status).toBe(200);
    t.clock.advance("1d");
    expect((await rotate(inbox_id)).status).toBe(200);
  });
});

describe("the contact card", () => {
  test("is a download that a strict reader takes, named after the inbox in every script", async () => {
    await using t = await testApp();
    const ada = await t.as("ada@example.com");
    const label = 'Büro; "Q3", 日本語\\🦊';
    const { body: inbox } = await ada.post("/inboxes", { label });
    const { status, headers, body } = await ada.get(`/inboxes/${inbox.id}/vcard`);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/vcard; charset=utf-8");
    expect(headers.get("content-disposition")).toBe(
      `attachment; filename="B_ro; Q3 , ___ __.vcf"; filename*=UTF-8''B%C3%BCro%3B%20Q3%20%2C%20%E6%97%A5%E6%9C%AC%E8%AA%9E%20%F0%9F%A6%8A.vcf`,
    );
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    const card = readVcard(Buffer.from(body));
    expect(card.get("FN")).toEqual([label]);
    expect(card.get("EMAIL;TYPE=INTERNET")).toEqual([inbox.address]);
    expect(card.get("UID")).toEqual([`urn:uuid:${inbox.id}`]);
  });

  test("is mailed to the owner as a signed letter with the same card", async () => {
    await using t = await testApp();
    const { ada, inbox_id } = await deskOf(t);
    const answer = await ada.post(`/inboxes/${inbox_id}/email-vcard`);
    expect([answer.status, answer.body]).toEqual([200, { sent: true, to: "ada@example.com" }]);
    const mails = await t.app.db.selectFrom("outgoing_mails").selectAll().execute();
    expect(mails).toMatchObject([{ envelope_to: "ada@example.com", kind: "notice", message_id: null }]);
    const mail = await simpleParser(Buffer.from(mails[0]?.raw ?? []));
    expect(mail.headers.get("dkim-signature")).toBeDefined();
    expect(mail.subject).toBe("Contact card: Inbox");
    expect(mail.attachments).toMatchObject([{ filename: "Inbox.vcf", contentType: "text/vcard" }]);
    const download = await ada.get(`/inboxes/${inbox_id}/vcard`);
    expect(mail.attachments[0]?.content.toString()).toBe(download.body);
  });

  test("is not mailed to an address that nobody has verified", async () => {
    await using t = await testApp();
    const { ada, inbox_id } = await deskOf(t);
    await t.app.db.updateTable("users").set({ email_verified: 0 }).execute();
    const answer = await ada.post(`/inboxes/${inbox_id}/email-vcard`);
    expect([answer.status, answer.body.code]).toEqual([403, "email_not_verified"]);
    expect(await t.app.db.selectFrom("outgoing_mails").select("id").execute()).toEqual([]);
  });

  test("is mailed five times an hour", async () => {
    await using t = await testApp();
    const { ada, inbox_id } = await deskOf(t);
    const mail = (): Promise<Answer> => ada.post(`/inboxes/${inbox_id}/email-vcard`);
    for (let count = 0; count < 5; count++) expect((await mail()).status).toBe(200);
    const refused = await mail();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "720"]);
    expect(await t.app.db.selectFrom("outgoing_mails").select("id").execute()).toHaveLength(5);
  });
});

describe("the tag of a recipient address", () => {
  const TAGS: [tag: string, tags: string[]][] = [
    ["Q3", ["q3"]],
    ["team/a_b-c", ["team/a_b-c"]],
    ["one+two+ONE", ["one", "two"]],
    ["q3.report", []],
    ["c_aaaaaaaaaaaaaaaaaaaa", []],
    ["", []],
    ["x".repeat(50), ["x".repeat(50)]],
    ["x".repeat(51), []],
  ];
  test.each(TAGS)("+%s is kept as %p, and gives no authority", async (tag, tags) => {
    await using room = await mailroom();
    const [local, domain] = room.inbox.address.split("@");
    const to = `${local}+${tag}@${domain}`;
    await using _ = { [Symbol.asyncDispose]: () => room.drain() };
    expect(
      await deliver(room.door, {
        from: "bob@example.org",
        to,
        raw: rawMail({ from: "bob@example.org", to }),
      }),
    ).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([{ tags, sender: "bob@example.org" }]);
    expect((await room.newest()).authority).toBe("stranger");
  });
});
