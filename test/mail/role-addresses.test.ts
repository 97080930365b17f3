import { expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { deliver, smtpClient } from "../support/smtp-client.ts";

const BOB = "bob@example.org";

async function letters(room: Mailroom) {
  const mails = await room.outgoing();
  return Promise.all(mails.map(({ raw }) => simpleParser(Buffer.from(raw ?? []))));
}

test.each(["postmaster@mw.test", "abuse@mw.test", "Postmaster@MW.test", "Postmaster"])(
  "mail to %s is taken, and reaches the administrator whole and signed",
  async (to) => {
    await using room = await mailroom();
    const raw = rawMail({
      from: `Bob <${BOB}>`,
      to,
      subject: "Your `server`\u{1F98A}",
      text: "It sends spam.",
    });
    expect(await deliver(room.door, { from: BOB, to, raw })).toStartWith("250 ");
    expect(await room.outgoing()).toMatchObject([
      { envelope_to: "ada@example.com", kind: "notice", message_id: null, user_id: room.owner.user.id },
    ]);
    const [letter] = await letters(room);
    expect(letter?.subject).toBe(`Mail to ${to}`);
    expect(letter?.headers.get("dkim-signature")).toBeDefined();
    expect(letter?.text).toContain("From: `bob@example.org`");
    expect(letter?.text).toContain("Subject: `Your 'server'\u{1F98A}`");
    const [file] = letter?.attachments ?? [];
    expect(file?.filename).toBe("message.eml");
    expect(String((await room.outgoing())[0]?.raw)).toContain("Content-Type: application/octet-stream;");
    expect(file?.content.toString()).toContain("It sends spam.");
    // It is no message of anybody's, and no model ever sees it.
    await room.drain();
    expect(await room.activity()).toEqual([]);
    expect(room.model.requests).toEqual([]);
  },
);

test("it reaches the administrator from the domains of accounts too, once they are active, and from our host name", async () => {
  await using room = await mailroom({ config: { domains: { verification: "trust" } } });
  const bob = await room.as(BOB);
  const { body: domain } = await bob.post("/custom-domains", { domain: "ai.acme.example" });
  expect(await room.send({ rcpt: "abuse@ai.acme.example" })).toStartWith("550 5.7.1 ");
  await bob.post(`/custom-domains/${domain.id}/verify`);
  for (const rcpt of ["abuse@ai.acme.example", "postmaster@ai.acme.example", "postmaster@mx.mw.test"])
    expect(await room.send({ from: "eve@example.net", rcpt })).toStartWith("250 ");
  const mails = await room.outgoing();
  expect(mails.map(({ envelope_to }) => envelope_to)).toEqual(Array(3).fill("ada@example.com"));
});

test("it is refused while there is no administrator, and at domains that are not the server's own", async () => {
  await using room = await mailroom();
  expect(await room.send({ rcpt: "postmaster@example.net" })).toStartWith("550 5.7.1 ");
  expect(await room.send({ rcpt: "postmasters@mw.test" })).toStartWith("550 5.1.1 ");
  await room.app.db.updateTable("users").set({ is_admin: 0 }).execute();
  expect(await room.send({ rcpt: "postmaster@mw.test" })).toStartWith("550 5.1.1 ");
  expect(await room.outgoing()).toEqual([]);
});

test("a mail to the postmaster and to an inbox is taken for both", async () => {
  await using room = await mailroom();
  expect(
    await room.send({ from: BOB, rcpt: ["postmaster@mw.test", room.inbox.address, "abuse@mw.test"] }),
  ).toStartWith("250 ");
  expect((await room.outgoing()).map(({ envelope_to }) => envelope_to)).toEqual([
    "ada@example.com",
    "ada@example.com",
  ]);
  await room.drain();
  expect(await room.activity()).toMatchObject([{ sender: BOB, status: "done" }]);
});

const MACHINES: [claim: string, mail: { mail_from?: string; headers: Record<string, string> }][] = [
  ["a report with the null sender", { mail_from: "", headers: {} }],
  ["what a program wrote", { headers: { "Auto-Submitted": "auto-generated" } }],
  ["an absence note", { headers: { "Auto-Submitted": "auto-replied" } }],
];
test.each(MACHINES)("%s is taken and goes nowhere", async (_claim, { mail_from = BOB, headers }) => {
  await using room = await mailroom();
  const mail = { from: BOB, mail_from, headers: { "Message-ID": "<m@example.org>", ...headers } };
  expect(await room.send({ ...mail, rcpt: "postmaster@mw.test" })).toStartWith("250 ");
  expect(await room.send({ ...mail, rcpt: ["abuse@mw.test", room.inbox.address] })).toStartWith("250 ");
  expect(await room.outgoing()).toEqual([]);
});

test("an administrator whose own address is the postmaster's starts no loop", async () => {
  await using room = await mailroom();
  await room.app.db.updateTable("users").set({ email: "postmaster@mw.test" }).execute();
  expect(await room.send({ from: BOB, rcpt: "abuse@mw.test" })).toStartWith("250 ");
  const [letter] = await room.outgoing();
  const { envelope_from: from = "", envelope_to: to = "", raw } = letter ?? {};
  expect(await deliver(room.door, { from, to, raw: raw ?? "" })).toStartWith("250 ");
  expect(await room.outgoing()).toHaveLength(1);
});

test("the twenty-first in an hour is put off, and nothing of it is lost or kept", async () => {
  await using room = await mailroom();
  await using client = await smtpClient(room.door);
  await client.say("EHLO client.example");
  const mail = { from: BOB, to: "postmaster@mw.test", raw: rawMail({ from: BOB }) };
  for (let count = 0; count < 20; count++) expect(await client.deliver(mail)).toStartWith("250 ");
  expect(await client.deliver(mail)).toStartWith("451 4.7.1 ");
  expect(await room.outgoing()).toHaveLength(20);
  room.clock.advance("1h");
  await client.say("RSET");
  expect(await client.deliver(mail)).toStartWith("250 ");
});

test("one that is too large to be passed on is refused", async () => {
  await using room = await mailroom();
  const text = `${"x".repeat(76)}\r\n`.repeat(210_000);
  expect(await room.send({ from: BOB, rcpt: "abuse@mw.test", text })).toStartWith("552 5.3.4 ");
  expect(await room.outgoing()).toEqual([]);
});
