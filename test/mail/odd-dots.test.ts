import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";

import { withoutQuotes, withQuotes } from "../../src/lib/mail-address.ts";
import { findingsOf, readAuthResults } from "../../src/mail/reading/auth-results.ts";
import { createResolver } from "../../src/net/dns.ts";
import { createSender } from "../../src/mail/sending/send.ts";
import { testApp } from "../support/app.ts";
import { direct, MAIL } from "../support/direct.ts";
import { mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { smtpClient } from "../support/smtp-client.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

const ANN = "ann..x.@phone.example";
const QUOTED = '"ann..x."@phone.example';

describe("a mailbox with dots where RFC 5321 wants none", () => {
  test.each([
    ["as it is", ANN, ANN],
    ["in quotes", QUOTED, QUOTED],
    ["in quotes on the envelope alone", QUOTED, ANN],
  ])("writes, %s, is on the list, and gets its answer", async (_, mail_from, from) => {
    await using room = await mailroom({ inbox: { allowlist_senders: [ANN] } });
    const raw = rawMail({
      from: `Ann <${from}>`,
      to: room.inbox.address,
      subject: "Sum",
      text: "Say hello.",
    });
    await using client = await smtpClient(room.door);
    await client.say("EHLO client.example");
    expect(await client.deliver({ from: mail_from, to: room.inbox.address, raw })).toStartWith("250");
    await room.drain();
    expect(await room.activity()).toMatchObject([{ status: "done", sender: ANN }]);
    expect(await room.newest()).toMatchObject({ authority: "listed" });
    const [answer] = await room.outgoing();
    expect(answer).toMatchObject({ envelope_to: ANN, kind: "reply" });
    const head = Buffer.from(answer?.raw ?? "").toString();
    expect(/^To: (.*)\r$/m.exec(head)?.[1]).toBe(`<${QUOTED}>`);
  });

  test("is nobody else's: no other mailbox becomes it, and it none", async () => {
    await using room = await mailroom({ inbox: { allowlist_senders: ["ann.x@phone.example"] } });
    for (const from of [ANN, "ann..x@phone.example", ".ann.x@phone.example", "ann.x.@phone.example"])
      await room.send({ from });
    await room.drain();
    const senders = (await room.activity()).map(({ sender }: { sender: string }) => sender);
    expect(new Set(senders).size).toBe(4);
    const messages = await room.app.db.selectFrom("messages").select("authority").execute();
    expect(new Set(messages.map(({ authority }) => authority))).toEqual(new Set(["stranger"]));
  });

  test("is a recipient that is not here, as any other is", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250-"],
      ["MAIL FROM:<>", "250 "],
      ["RCPT TO:<a..b@mw.test>", "550 5.1.1"],
      ['RCPT TO:<"a..b"@mw.test>', "550 5.1.1"],
      ["RCPT TO:<a..b@elsewhere.example>", "550 5.7.1"],
    ]);
  });

  test("has an account and a list entry, with and without quotes the same", async () => {
    await using t = await testApp();
    const ann = await t.as(QUOTED);
    expect((await ann.get("/auth/me")).body).toMatchObject({ email: ANN });
    const { body } = await ann.post("/inboxes", {
      label: "Desk",
      allowlist_senders: [QUOTED, ANN, ".bob@phone.example"],
    });
    expect(body.allowlist_senders).toEqual([ANN, ".bob@phone.example"]);
    const refused = await ann.post("/inboxes", { label: "Desk", allowlist_senders: ['"a b"@phone.example'] });
    expect(refused.status).toBe(422);
  });

  test("writes by the contact form, and an answer goes there", async () => {
    await using t = await testApp({ auth: { admin_email: "boss@example.org" } });
    await t.as("boss@example.org");
    const { status } = await t
      .as("ada@example.com")
      .then((ada) => ada.post("/contacts", { name: "Ann", email: QUOTED, message: "Hello" }));
    expect(status).toBe(201);
    const letters = await t.app.db.selectFrom("outgoing_mails").selectAll().execute();
    const letter = letters.find(({ envelope_to }) => envelope_to === "boss@example.org");
    expect((await simpleParser(Buffer.from(letter?.raw ?? ""))).replyTo?.value[0]?.address).toBe(QUOTED);
  });
});

describe("a command to another server", () => {
  const mail = { ...MAIL, envelope_to: "ann..x.@there.example" };
  test("has such a mailbox in quotes (direct)", async () => {
    await using t = await direct([{}], { "there.example": { MX: [[10, "mx1.there.example"]] } });
    expect(await t.sender.send(mail)).toMatchObject({ status: "sent" });
    expect(t.sinks[0]?.mails[0]?.rcpt_to).toEqual(['"ann..x."@there.example']);
  });

  test("has such a mailbox in quotes (relay)", async () => {
    await using sink = await startSmtpSink();
    await using sender = createSender({
      mode: "relay",
      relay_url: `smtp://127.0.0.1:${sink.port}`,
      hostname: "me.example",
      resolver: createResolver({ servers: ["127.0.0.1:1"] }),
      egress_allow: ["127.0.0.0/8"],
    });
    expect(await sender.send(mail)).toMatchObject({ status: "sent" });
    expect(sink.mails[0]?.rcpt_to).toEqual(['"ann..x."@there.example']);
  });
});

test.each([
  ["ann@x.test", "ann@x.test"],
  ["a..b@x.test", '"a..b"@x.test'],
  [".a@x.test", '".a"@x.test'],
  ["a.@x.test", '"a."@x.test'],
  // What else is odd stays as it is: in quotes it could be another mailbox, without them a command of its own.
  ["a..b c@x.test", "a..b c@x.test"],
  ['a.."b@x.test', 'a.."b@x.test'],
  ["a..b\r\nRCPT TO:<c@x.test>", "a..b\r\nRCPT TO:<c@x.test>"],
])("%j is written %j", (address, written) => {
  expect(withQuotes(address)).toBe(written);
  if (written !== address) expect(withoutQuotes(written)).toBe(address);
});

test.each([
  '"ann"@x.test',
  '"a b"@x.test',
  '"a..b@x.test',
  'a..b"@x.test',
  '"a..b"c@x.test',
  '""@x.test',
  '"',
])("%s keeps its quotes", (address) => {
  expect(withoutQuotes(address)).toBe(address);
});

test("a relay's word on the envelope of such a mailbox counts for its domain", () => {
  const aligned = (mailbox: string): string[] => {
    const field = readAuthResults(`mx.example.org; spf=pass smtp.mailfrom=${mailbox}`);
    return findingsOf(field ? [field] : [], "phone.example").spf.aligned;
  };
  expect(aligned(QUOTED)).toEqual(["phone.example"]);
  expect(aligned(ANN)).toEqual(["phone.example"]);
  expect(aligned('"a@phone.example"@evil.test')).toEqual([]);
  expect(aligned('"a..b@phone.example"')).toEqual(["phone.example"]);
});
