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
    expect(letter?.text).toContain("From: bob@example.org");
    expect(letter?.text).toContain(`Subject: "Your 'server'\u{1F98A}"`);
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

test("mail to a role reaches the administrator from the domains of accounts too, once they are active, and from our host name", async () => {
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

test("mail to a role is refused while there is no administrator, and at domains that are not the server's own", async () => {
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

const COMPLAINT = 'multipart/report; report-type="feedback-report"; boundary=b';
test.each([
  ["the null sender", "", COMPLAINT],
  ["a mailbox", "fbl@provider.example", COMPLAINT.replaceAll('"', "")],
])("a complaint (RFC 5965) from %s reaches the administrator whole", async (_whose, from, type) => {
  await using room = await mailroom();
  const raw = complaint("fbl@provider.example", type);
  expect(await deliver(room.door, { from, to: "abuse@mw.test", raw })).toStartWith("250 ");
  const [letter, ...others] = await letters(room);
  expect(others).toEqual([]);
  expect(letter?.subject).toBe("Mail to abuse@mw.test");
  expect(letter?.attachments[0]?.content.toString()).toContain("Feedback-Type: abuse");
});

test("a complaint that names no author is refused, and one to an inbox alone is machine mail as before", async () => {
  await using room = await mailroom();
  const raw = complaint("nobody", COMPLAINT);
  expect(await deliver(room.door, { from: "", to: "abuse@mw.test", raw })).toStartWith("550 ");
  const to = room.inbox.address;
  const from = "fbl@provider.example";
  expect(await deliver(room.door, { from, to, raw: complaint(from, COMPLAINT) })).toStartWith("250 ");
  await room.drain();
  expect(await room.outgoing()).toEqual([]);
  expect(room.model.requests).toEqual([]);
});

function complaint(from: string, type: string): string {
  return [
    `From: <${from}>`,
    "To: <abuse@mw.test>",
    "Subject: FW: Your answer",
    "Message-ID: <1@provider.example>",
    "Auto-Submitted: auto-generated",
    "MIME-Version: 1.0",
    `Content-Type: ${type}`,
    "",
    "--b",
    "",
    "This is an email abuse report.",
    "--b",
    "Content-Type: message/feedback-report",
    "",
    "Feedback-Type: abuse",
    "User-Agent: Provider/1.0",
    "Version: 1",
    "--b",
    "Content-Type: message/rfc822",
    "",
    "From: <notes@mw.test>",
    "Subject: Your answer",
    "",
    "Hello.",
    "--b--",
    "",
  ].join("\r\n");
}

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
  const to = "postmaster@mw.test";
  const mailOf = (sender: string, text = "It burns.") => ({
    from: sender,
    to,
    raw: rawMail({ from: sender, text }),
  });
  await using client = await smtpClient(room.door);
  await client.say("EHLO client.example");
  for (let count = 0; count < 20; count++)
    expect(await client.deliver(mailOf(`eve@d${count % 4}.example`, `Mail ${count}`))).toStartWith("250 ");
  expect(await client.deliver(mailOf(BOB))).toStartWith("451 4.7.1 The operator has been written to ");
  expect(await room.outgoing()).toHaveLength(20);
  room.clock.advance("1h");
  await client.say("RSET");
  expect(await client.deliver(mailOf(BOB))).toStartWith("250 ");
});

test("one domain, whatever is written before and below it, keeps nobody else from the operator", async () => {
  await using room = await mailroom();
  const write = (from: string, rcpt = "abuse@mw.test") => room.send({ from, rcpt });
  for (let count = 0; count < 5; count++)
    expect(await write(`e${count}@s${count}.EXAMPLE.net`)).toStartWith("250 ");
  expect(await write("eve@example.net")).toStartWith("451 4.7.1 The operator takes no more than 5 mails ");
  // What was put off has used up nothing, here as with all of them together.
  for (let count = 0; count < 30; count++) await write("eve@example.net");
  expect(await write("eve@example.net", "postmaster@mw.test")).toStartWith("451 4.7.1 ");
  expect(await write(BOB)).toStartWith("250 ");
  room.clock.advance("12m");
  expect(await write("eve@example.net")).toStartWith("250 ");
});

test("one network, whoever it says has written, keeps no other one from the operator, but a domain that is proven is its own", async () => {
  await using room = await mailroom({ config: { smtp: { trusted_networks: ["127.0.9.0/24"] } } });
  const write = (from: string, local_address: string) =>
    room.send({ from, rcpt: "abuse@mw.test", local_address });
  for (let count = 0; count < 5; count++)
    expect(await write(`x@d${count}.example`, `127.0.1.${count + 1}`)).toStartWith("250 ");
  expect(await write("x@d9.example", "127.0.1.9")).toStartWith("451 4.7.1 ");
  expect(await write("x@d9.example", "127.0.2.1")).toStartWith("250 ");
  expect(await write("x@d0.example", "127.0.9.1")).toStartWith("250 ");
});

test("a mail for an inbox too is divided where its sender has written to the operator often enough", async () => {
  await using room = await mailroom();
  for (let count = 0; count < 5; count++) await room.send({ from: BOB, rcpt: "abuse@mw.test" });
  const raw = rawMail({ from: BOB });
  await using client = await smtpClient(room.door);
  await client.say("EHLO client.example");
  expect(await client.deliver({ from: BOB, to: "abuse@mw.test", raw })).toStartWith("451 4.7.1 ");
  const both = ["postmaster@mw.test", room.inbox.address];
  expect(await room.send({ from: BOB, rcpt: both })).toStartWith("451 4.7.1 ");
  await client.say("RSET");
  await client.say(`MAIL FROM:<${BOB}>`);
  expect(await client.say("RCPT TO:<postmaster@mw.test>")).toStartWith("451 4.7.1 ");
  expect(await client.say(`RCPT TO:<${room.inbox.address}>`)).toStartWith("250 ");
});

test("one that is too large to be passed on is refused", async () => {
  await using room = await mailroom();
  const text = `${"x".repeat(76)}\r\n`.repeat(210_000);
  expect(await room.send({ from: BOB, rcpt: "abuse@mw.test", text })).toStartWith("552 5.3.4 ");
  expect(await room.outgoing()).toEqual([]);
});

test("the same mail, brought once more, makes no second letter; another one with its Message-ID does", async () => {
  await using room = await mailroom();
  const headers = { "Message-ID": "<1@example.org>" };
  const mail = { from: BOB, rcpt: ["abuse@mw.test", "postmaster@mw.test"], text: "It burns.", headers };
  for (let count = 0; count < 3; count += 1) expect(await room.send(mail)).toStartWith("250 ");
  expect((await letters(room)).map(({ subject }) => subject)).toEqual([
    "Mail to abuse@mw.test",
    "Mail to postmaster@mw.test",
  ]);
  expect(await room.send({ ...mail, rcpt: "abuse@mw.test", text: "It is out." })).toStartWith("250 ");
  expect(await letters(room)).toHaveLength(3);
});
