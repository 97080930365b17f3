import { describe, expect, test } from "bun:test";
import { simpleParser } from "mailparser";
import type { ConfigOverrides } from "../../src/config/config.ts";
import type { OutgoingMailRow } from "../../src/db/schema.ts";
import { kindOfReturn } from "../../src/mail/sending/suppressions.ts";
import { mailroom, type Mailroom, READS_ANYBODY } from "../support/mailroom.ts";
import { notification } from "../support/mails.ts";
import { deliver } from "../support/smtp-client.ts";
import { type SinkOptions, startSmtpSink } from "../support/smtp-sink.ts";

const BOB = "Bob <bob@example.org>";

/** Its mail to others is refused as `reject` says. */
async function refusing(reject: SinkOptions["reject"]) {
  await using stack = new AsyncDisposableStack();
  const sink = stack.use(await startSmtpSink(reject === undefined ? {} : { reject }));
  const relay_url = `smtp://127.0.0.1:${sink.port}`;
  const config: ConfigOverrides = { outbound: { mode: "relay", relay_url, retry: [60] } };
  const room = stack.use(await mailroom({ config, inbox: READS_ANYBODY }));
  const built = stack.move();
  return { ...room, sink, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

describe("an address", () => {
  test("that is dead gets no further answer, and the message says why", async () => {
    await using room = await refusing(() => "550 5.1.1 no such mailbox");
    await sendFor(room, "robert@example.org");
    expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
    await sendFor(room, "robert@example.org");
    const [message] = await room.activity();
    expect(message).toMatchObject({
      status: "done",
      reply_status: "suppressed",
      reply_error: expect.stringMatching(/^No answer is sent to robert@example\.org.*no such mailbox/),
    });
    const { body } = await room.owner.get(`/v1/messages/${message.message_id}`);
    expect(body.reply_status).toBe("suppressed");
    expect((await room.outgoing()).map(({ attempts }) => attempts)).toEqual([1, 0]);
  });

  test("that refuses for our sake, or whose mailbox is full once, still gets answers", async () => {
    for (const words of ["550 5.7.1 we do not like you", "552 5.2.2 mailbox full", "554 no"]) {
      await using room = await refusing(() => words);
      for (let mail = 0; mail < 2; mail++) await sendFor(room, "robert@example.org");
      expect((await room.activity())[0]).toMatchObject({ reply_status: "bounced" });
    }
  });

  test("that returns three mails softly gets no fourth", async () => {
    await using room = await refusing(() => "552 5.2.2 mailbox full");
    for (const status of ["bounced", "bounced", "bounced", "suppressed"]) {
      await sendFor(room, "robert@example.org");
      expect((await room.activity())[0]).toMatchObject({ reply_status: status });
    }
  });

  test("that returns mails softly now and then, more than 30 days apart, goes on getting answers", async () => {
    await using room = await refusing(() => "552 5.2.2 mailbox full");
    for (let mail = 0; mail < 4; mail++) {
      await sendFor(room, "robert@example.org");
      expect((await room.activity())[0]).toMatchObject({ reply_status: "bounced" });
      room.clock.advance("31d");
    }
  });

  test("gets answers again when it writes in a mail that is proven, and not by one that is not", async () => {
    let refused = true;
    await using room = await refusing(() => (refused ? "550 5.1.1 no such mailbox" : undefined));
    await send(room, BOB);
    await room.drain();
    refused = false;
    room.app.config.smtp.trusted_networks = [];
    await send(room, BOB);
    expect(await suppressed(room)).toEqual(["bob@example.org"]);
    room.app.config.smtp.trusted_networks = ["127.0.0.0/8"];
    await send(room, "Bob <Bob@EXAMPLE.org>");
    await room.drain();
    expect(await suppressed(room)).toEqual([]);
    expect((await room.activity())[0]).toMatchObject({ reply_status: "sent" });
  });

  test("is dead for the account that wrote to it, and for no other", async () => {
    await using room = await refusing(() => "550 5.1.1 no such mailbox");
    await send(room, BOB);
    await room.drain();
    const eve = await room.as("eve@example.net");
    const { address } = (await eve.post("/inboxes", { label: "Eve" })).body;
    await send(room, BOB, address);
    await room.drain();
    expect((await eve.get("/messages")).body.items).toMatchObject([{ reply_status: "bounced" }]);
  });

  test("that dies while a mail waits for it is not tried again", async () => {
    await using room = await refusing(() => "451 4.7.1 greylisted");
    await send(room, BOB);
    await room.drain();
    const [waiting] = await room.outgoing();
    await room.app.write((tx) =>
      tx
        .insertInto("suppressions")
        .values({
          user_id: waiting?.user_id ?? "",
          address: "bob@example.org",
          reason: "gone",
          soft_bounces: 0,
          suppressed_at: room.app.now(),
          updated: room.app.now(),
        })
        .execute(),
    );
    room.clock.advance("60s");
    await room.drain();
    expect(room.sink.connections).toBe(1);
    expect(await room.activity()).toMatchObject([{ reply_status: "suppressed" }]);
  });

  test("of the account itself gets its login codes whatever came back", async () => {
    await using room = await refusing((to) => (to === "ada@example.com" ? "550 5.1.1 who?" : undefined));
    await send(room, "Ada <ada@example.com>");
    await room.drain();
    expect(await suppressed(room)).toEqual(["ada@example.com"]);
    const answer = await room.request("/auth/request-code", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ email: "ada@example.com" }),
    });
    expect(answer.status).toBe(202);
    await room.drain();
    expect(await notices(room)).toMatchObject([{ envelope_to: "ada@example.com", attempts: 1 }]);
  });

  test("is dead by a report as well, if it came to the bounce address, and counted once", async () => {
    await using room = await refusing(undefined);
    await send(room, BOB);
    await room.drain();
    const [mail] = await room.outgoing();
    const report = notification({ status: "5.2.2" });
    for (let times = 0; times < 4; times++)
      await deliver(room.door, { from: "", to: mail?.envelope_from ?? "", raw: report });
    expect(await suppressed(room)).toEqual([]);
    await send(room, BOB);
    await room.drain();
    const [, second] = await room.outgoing();
    await deliver(room.door, { from: "", to: second?.envelope_from ?? "", raw: notification({}) });
    expect(await suppressed(room)).toEqual(["bob@example.org"]);
  });

  test("that is full, or keeps mail out, is not dead by a report with the status of one that is", async () => {
    await using room = await refusing(undefined);
    const reported = async (said: string): Promise<string[]> => {
      await send(room, BOB);
      await room.drain();
      const to = (await room.outgoing()).at(-1)?.envelope_from ?? "";
      await deliver(room.door, { from: "", to, raw: notification({ said }) });
      expect((await room.activity())[0]).toMatchObject({ reply_status: "bounced" });
      return suppressed(room);
    };
    expect(await reported("smtp; 550 5.1.1 mailbox is over quota")).toEqual([]);
    expect(await reported("smtp; 550 5.7.1 blocked")).toEqual([]);
    expect(await reported("smtp; 550 5.1.1 no such user")).toEqual(["bob@example.org"]);
  });

  test("is dead by no report that only knows a Message-ID", async () => {
    await using room = await refusing(undefined);
    await send(room, BOB);
    await room.drain();
    const [mail] = await room.outgoing();
    const body = `From: MAILER-DAEMON@example.org\r\n\r\n550 5.1.1 who?\r\n\r\nMessage-ID: <${mail?.rfc_message_id}>\r\n`;
    await deliver(room.door, { from: "", to: room.inbox.address, raw: notification({ body }) });
    expect((await room.activity()).at(-1)).toMatchObject({ reply_status: "bounced" });
    expect(await suppressed(room)).toEqual([]);
  });
});

describe("the owner", () => {
  test("is told in one mail a day which answers to others came back", async () => {
    await using room = await refusing((to) => (to.endsWith(".org") ? "550 5.1.1 *who*?" : undefined));
    await send(room, BOB, undefined, "[click](https://evil.example) `x`");
    await send(room, "Cy <cy@example.org>");
    await room.drain();
    expect(await notices(room)).toEqual([]);
    room.clock.advance("5m");
    await room.drain();
    const [notice, ...others] = await notices(room);
    expect([notice?.envelope_to, others]).toEqual(["ada@example.com", []]);
    const { subject, text, html } = await simpleParser(Buffer.from(notice?.raw ?? []));
    expect(subject).toBe("Answers could not be delivered");
    for (const words of ["2 answers", "bob@example.org", "cy@example.org", "550 5.1.1 *who*?"])
      expect(text).toContain(words);
    expect(html).not.toContain('href="https://evil.example');
    await send(room, "Di <di@example.org>");
    await room.drain();
    room.clock.advance("6h");
    await room.drain();
    expect(await notices(room)).toHaveLength(1);
    room.clock.advance("12h");
    await room.drain();
    const [, next] = await notices(room);
    const { text: later } = await simpleParser(Buffer.from(next?.raw ?? []));
    expect(later).toContain("di@example.org");
    expect(later).not.toContain("bob@example.org");
  });

  test.each(["552 5.3.4 message too big", "554 5.7.1 looks like spam", "552 5.2.2 mailbox full"])(
    "is told of an answer to them that came back: %s",
    async (words) => {
      let fault: string | undefined = words;
      await using room = await refusing(() => fault);
      await send(room, "Ada <ada@example.com>", undefined, "Holiday");
      await room.drain();
      expect(await room.activity()).toMatchObject([{ reply_status: "bounced" }]);
      fault = undefined;
      room.clock.advance("5m");
      await room.drain();
      const [notice] = await notices(room);
      expect(notice).toMatchObject({ envelope_to: "ada@example.com", status: "sent" });
      const { text } = await simpleParser(Buffer.from(notice?.raw ?? []));
      for (const told of ["An answer that Mailwright wrote", "Holiday", words]) expect(text).toContain(told);
    },
  );

  test("whose address came back is told once it has had a rest, and gets answers again", async () => {
    let fault: string | undefined = "550 5.1.1 who?";
    await using room = await refusing(() => fault);
    const post = () => room.owner.post(`/inboxes/${room.inbox.id}/test`);
    await send(room, "Ada <ada@example.com>");
    await room.drain();
    fault = undefined;
    room.clock.advance("1h");
    await room.drain();
    expect([await suppressed(room), await notices(room)]).toEqual([["ada@example.com"], []]);
    expect((await post()).status).toBeLessThan(300);
    room.clock.advance("20h");
    await room.drain();
    expect(await notices(room)).toMatchObject([{ envelope_to: "ada@example.com", status: "sent" }]);
    await send(room, "Ada <ada@example.com>");
    await room.drain();
    expect((await room.activity())[0]).toMatchObject({ reply_status: "sent" });
    expect(await suppressed(room)).toEqual([]);
  });

  test("can have a private answer sent again that came back, which is kept until then and no longer", async () => {
    let fault: string | undefined = "552 5.3.4 message too big";
    await using room = await refusing(() => fault);
    const headers = { "Message-ID": "<private@example.com>" };
    await room.send({ from: "Ada <ada@example.com>", text: "--private When does it open?", headers });
    await room.drain();
    expect(await room.outgoing()).toMatchObject([{ private: 1, status: "bounced", raw: expect.anything() }]);
    const [{ message_id }] = await room.activity();
    fault = undefined;
    expect((await room.owner.post(`/messages/${message_id}/retry`)).status).toBe(202);
    await room.drain();
    expect(await room.outgoing()).toMatchObject([{ private: 1, status: "sent", raw: null }]);
  });

  test("whose notice bounces gets no notice of that", async () => {
    await using room = await refusing(() => "550 5.1.1 who?");
    await send(room, BOB);
    await room.drain();
    for (let day = 0; day < 3; day++) {
      room.clock.advance("1d");
      await room.drain();
    }
    expect(await notices(room)).toMatchObject([{ envelope_to: "ada@example.com", status: "bounced" }]);
  });
});

const RETURNS: [code: number | undefined, enhanced: string | undefined, kind: string][] = [
  [550, "5.1.1", "hard"],
  [550, "5.1.10", "hard"],
  [550, "5.2.1", "soft"],
  [550, "5.1.0", "soft"],
  [550, "5.1.8", "other"],
  [552, "5.2.2", "soft"],
  [550, "5.7.1", "other"],
  [451, "4.7.1", "other"],
  [451, "4.4.1", "soft"],
  [undefined, "4.4.3", "other"],
  [552, "5.3.4", "other"],
  [550, undefined, "soft"],
  [undefined, undefined, "other"],
  [undefined, "5.1.2", "hard"],
];
test.each(RETURNS)("a return with %s %s counts as %s", (code, enhanced, kind) => {
  expect(kindOfReturn({ code, enhanced, response: "" })).toBe(kind as never);
});

const SAID: [said: string, kind: string][] = [
  ["550 5.1.1 The mailbox is full", "soft"],
  ["550 5.1.1 Over quota", "soft"],
  ["550 5.1.1 Blocked: your address is on a blocklist", "soft"],
  ["550 5.1.1 Too many mails from you", "soft"],
  ["550 5.1.3 http://spamhaus.example/query", "soft"],
  ["550 5.2.1 The account is disabled", "soft"],
  ["550 5.2.1 Refused by policy: SPF", "soft"],
  ["550 5.1.0 Address rejected", "soft"],
  ["550 5.1.1 <spam@blocked.example> User unknown", "hard"],
  ["550 5.1.1 Blockchain Ltd has no such user", "hard"],
  ["550 5.4.5 Daily user sending limit exceeded", "other"],
  ["554 5.2.0 SubmissionQuotaExceeded: the limit of the sender", "other"],
  ["552 5.2.2 The mailbox is over its limit", "soft"],
  ["550 5.0.0 User unknown", "soft"],
  ["550 5.0.0 Message blocked by our filter", "other"],
];
test.each(SAID)("the words of a server say more than its status: %s", (said, kind) => {
  const enhanced = said.split(" ")[1];
  expect(kindOfReturn({ code: 550, enhanced, response: said })).toBe(kind as never);
  expect(kindOfReturn({ enhanced, response: "It came back.", said })).toBe(kind as never);
});

test("a reply code alone says nothing of the address where its words are about this server", () => {
  expect(kindOfReturn({ code: 550, response: "550 no" })).toBe("soft");
  expect(kindOfReturn({ code: 554, response: "554 Your address is blacklisted" })).toBe("other");
});

async function send(room: Mailroom, from: string, rcpt?: string, subject = "Hello"): Promise<void> {
  const text = `Hello ${Bun.randomUUIDv7()}`;
  const mail = { from, text, subject, headers: { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>` } };
  expect(await room.send(rcpt === undefined ? mail : { ...mail, rcpt })).toStartWith("250 ");
}

/** A mail of which the answer goes to another address than its sender's, both of them listed. */
async function sendFor(room: Mailroom, reply_to: string): Promise<void> {
  await room.owner.patch(`/inboxes/${room.inbox.id}`, { allowlist_senders: ["bob@example.org", reply_to] });
  const headers = { "Message-ID": `<${Bun.randomUUIDv7()}@example.com>`, "Reply-To": reply_to };
  const text = `Hello ${Bun.randomUUIDv7()}`;
  expect(await room.send({ from: BOB, text, headers })).toStartWith("250 ");
  await room.drain();
}

async function suppressed(room: Mailroom): Promise<string[]> {
  const rows = await room.app.db
    .selectFrom("suppressions")
    .select("address")
    .where("suppressed_at", "is not", null)
    .execute();
  return rows.map(({ address }) => address);
}

async function notices(room: Mailroom): Promise<OutgoingMailRow[]> {
  return (await room.outgoing()).filter(({ kind }) => kind === "notice");
}
