import { describe, expect, test } from "bun:test";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { notification } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";

describe("a notification to the bounce address of a reply", () => {
  const AUTHORS: [claim: string, from: string[]][] = [
    ["without a domain in its From", ["From: MAILER-DAEMON"]],
    ["with an empty From", ["From: <>"]],
    ["without a From", []],
    ["with an ordinary From", ["From: Mail System <MAILER-DAEMON@mail.example.com>"]],
  ];
  test.each(AUTHORS)("%s marks the reply as bounced", async (_claim, from) => {
    await using room = await mailroom();
    const to = await answered(room);
    expect(await deliver(room.door, { from: "", to, raw: notification({ from }) })).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([
      { status: "done", reply_status: "bounced", reply_error: expect.stringContaining("5.1.1") },
    ]);
  });

  test("is believed without asking the DNS about its sender", async () => {
    await using dns = await startDnsServer();
    await using room = await mailroom({ config: { dns: { servers: [dns.address] } } });
    const to = await answered(room);
    room.app.config.smtp.trusted_networks = [];
    dns.fault("*", "servfail");
    expect(await deliver(room.door, { from: "", to, raw: notification({}) })).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
    expect(dns.queries).toEqual([]);
  });

  test("of a final failure after days of retries marks it too (class 4)", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    await deliver(room.door, { from: "", to, raw: notification({ status: "4.4.7" }) });
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
  });

  test("of a delay shows the reply as deferred, until one of its delivery or its failure comes", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    const report = (action: string, status: string): Promise<string> =>
      deliver(room.door, { from: "", to, raw: notification({ action, status }) });
    await report("delayed", "4.4.1");
    expect(await room.activity()).toMatchObject([
      { reply_status: "deferred", reply_error: expect.stringContaining("4.4.1") },
    ]);
    await report("delivered", "2.0.0");
    expect(await room.activity()).toMatchObject([{ reply_status: "sent", reply_error: null }]);
    await report("delayed", "4.4.1");
    await report("failed", "4.4.7");
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
    await report("delivered", "2.0.0");
    await report("delayed", "4.4.1");
    expect(await room.activity()).toMatchObject([
      { reply_status: "bounced", reply_error: expect.stringContaining("4.4.7") },
    ]);
  });

  test("is seen in both views of the message", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    await deliver(room.door, { from: "", to, raw: notification({}) });
    const [{ message_id }] = await room.activity();
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
    const { body } = await room.owner.get(`/v1/messages/${message_id}`);
    expect(body.reply_status).toBe("bounced");
  });

  const HARMLESS: [claim: string, report: Parameters<typeof notification>[0]][] = [
    ["of a delivery", { action: "delivered", status: "2.0.0" }],
    ["that is an absence note", { body: "From: ada@example.com\r\nSubject: Away\r\n\r\nI am away.\r\n" }],
    ["that holds no report", { body: "From: MAILER-DAEMON\r\n\r\nStatus: 5.1.1\r\n" }],
  ];
  test.each(HARMLESS)("%s is taken and changes nothing", async (_claim, report) => {
    await using room = await mailroom();
    const to = await answered(room);
    expect(await deliver(room.door, { from: "", to, raw: notification(report) })).toStartWith("250 ");
    await room.drain();
    expect(await room.activity()).toMatchObject([{ reply_status: "sent", reply_error: null }]);
    expect(room.model.requests).toHaveLength(1);
    expect(await room.outgoing()).toHaveLength(1);
  });

  test("is refused when nobody of ours made the address", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    const forged = to.replace(/.@/, (end) => (end === "a@" ? "b@" : "a@"));
    expect(await deliver(room.door, { from: "", to: forged, raw: notification({}) })).toStartWith(
      "550 5.1.1 ",
    );
    expect(await room.activity()).toMatchObject([{ reply_status: "sent" }]);
  });
});

/** As qmail and others write: in words, with our mail behind them. */
const inWords = (words: string, message_id: string, head = ""): Buffer =>
  Buffer.from(
    [
      "From: MAILER-DAEMON@mail.example.com",
      ...(head === "" ? [] : [head]),
      "Subject: Your mail",
      "",
      "Hi. This is the mail program at mail.example.com.",
      "<ada@example.com>:",
      words,
      "",
      "--- Below this line is a copy of the message.",
      "",
      "From: Desk <desk@mw.test>",
      `Message-ID: <${message_id}>`,
      "",
      "The answer.",
    ].join("\r\n"),
  );

describe("a notification in words of its own", () => {
  const WORDS: [words: string, seen: object][] = [
    [
      "Sorry, no mailbox here by that name. 5.1.1",
      { reply_status: "bounced", reply_error: expect.stringContaining("5.1.1") },
    ],
    ["192.0.2.1 does not like recipient. Remote host said: 550 who?", { reply_status: "bounced" }],
    ["The mail is delayed: 4.4.1", { reply_status: "deferred" }],
    ["host mx.example.com said 550: no", { reply_status: "bounced" }],
    ["A message that you sent could not be delivered to one of its recipients.", { reply_status: "bounced" }],
    ["This is a permanent error; I've given up.", { reply_status: "bounced" }],
    ["Your message wasn't delivered to ada.", { reply_status: "bounced" }],
    ["The user does not exist.", { reply_status: "bounced" }],
    ["Your message was displayed.", { reply_status: "sent" }],
  ];
  test.each(WORDS)("counts when our mail is in it: %s", async (words, seen) => {
    await using room = await mailroom();
    const to = await answered(room);
    const id = (await room.outgoing())[0]?.rfc_message_id ?? "";
    await deliver(room.door, { from: "", to, raw: inWords(words, id) });
    expect(await room.activity()).toMatchObject([seen]);
  });

  test("does not count with another mail in it, nor as the receipt of a reader", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    const id = (await room.outgoing())[0]?.rfc_message_id ?? "";
    await deliver(room.door, { from: "", to, raw: inWords("550 5.1.1 who?", "other@mw.test") });
    const receipt = "Content-Type: multipart/report; report-type=disposition-notification; boundary=b";
    await deliver(room.door, { from: "", to, raw: inWords("550 5.1.1 read", id, receipt) });
    expect(await room.activity()).toMatchObject([{ reply_status: "sent" }]);
  });

  /** As some write, without the mail. */
  const withoutMail = (from: string, named: string): Buffer =>
    Buffer.from(`From: ${from}\r\nSubject: failure notice\r\n\r\n<${named}>: 550 5.1.1 user unknown\r\n`);

  test("counts without our mail only from a mail system that names our recipient", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    const system = "MAILER-DAEMON@mail.example.com";
    const send = (raw: Buffer): Promise<string> => deliver(room.door, { from: "", to, raw });
    for (const raw of [
      withoutMail(system, "other@example.com"),
      withoutMail("Ada <ada@example.com>", "ada@example.com"),
    ]) {
      expect(await send(raw)).toStartWith("250 ");
      expect(await room.activity()).toMatchObject([{ reply_status: "sent" }]);
    }
    await send(withoutMail(system, "Ada@example.com"));
    expect(await room.activity()).toMatchObject([
      { reply_status: "bounced", reply_error: expect.stringContaining("5.1.1") },
    ]);
  });

  test("counts without our mail at the bounce address alone", async () => {
    await using room = await mailroom();
    await answered(room);
    const raw = withoutMail("MAILER-DAEMON@mail.example.com", "ada@example.com");
    await deliver(room.door, { from: "", to: room.inbox.address, raw });
    expect((await room.activity()).at(-1)).toMatchObject({ reply_status: "sent" });
  });

  test("counts in another's name at the bounce address, which takes nothing else of theirs", async () => {
    await using room = await mailroom();
    const to = await answered(room);
    const id = (await room.outgoing())[0]?.rfc_message_id ?? "";
    const send = (message_id: string, head = ""): Promise<string> => {
      const raw = inWords("It could not be delivered.", message_id, head).toString();
      const from = "no-reply@carrier.example";
      return deliver(room.door, { from, to, raw: Buffer.from(raw.replace(/^From: .*/, `From: ${from}`)) });
    };
    expect(await send("other@mw.test")).toStartWith("550 ");
    expect(await send(id, "Auto-Submitted: auto-replied")).toStartWith("550 ");
    expect(await room.activity()).toMatchObject([{ reply_status: "sent" }]);
    expect(await send(id)).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
  });

  test("that came to the inbox is found by our Message-ID, but not by one that we did not make", async () => {
    await using room = await mailroom();
    await answered(room);
    const id = (await room.outgoing())[0]?.rfc_message_id ?? "";
    const forged = id.replace(/\.[a-z2-7]/, (code) => (code === ".a" ? ".b" : ".a"));
    const send = (message_id: string): Promise<string> =>
      deliver(room.door, { from: "", to: room.inbox.address, raw: inWords("550 5.1.1 who?", message_id) });
    await send(forged);
    expect((await room.activity()).at(-1)).toMatchObject({ reply_status: "sent" });
    await send(id);
    expect((await room.activity()).at(-1)).toMatchObject({ reply_status: "bounced" });
  });

  test("that came to somebody else's inbox changes nothing", async () => {
    await using room = await mailroom();
    await answered(room);
    const id = (await room.outgoing())[0]?.rfc_message_id ?? "";
    const eve = await room.as("eve@example.net");
    const { address } = (await eve.post("/inboxes", { label: "Eve" })).body;
    await deliver(room.door, { from: "", to: address, raw: inWords("550 5.1.1 who?", id) });
    expect((await room.activity()).at(-1)).toMatchObject({ reply_status: "sent" });
  });
});

/** One mail is answered: the envelope sender of the answer. */
async function answered(room: Mailroom): Promise<string> {
  await room.send({});
  await room.drain();
  return (await room.outgoing())[0]?.envelope_from ?? "";
}
