import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { sql } from "kysely";
import { freshId, mailroom, type Mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { deliver, smtpClient } from "../support/smtp-client.ts";
import { KB } from "../../src/lib/sizes.ts";

const sender = "ada@example.com";

describe("the dialogue", () => {
  test("greets, and names exactly what it can do", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    expect(client.greeting).toBe("220 mx.mw.test ESMTP Mailwright");
    const [hello, ...keywords] = (await client.say("EHLO client.example")).split("\n");
    expect(hello).toStartWith("250-mx.mw.test");
    expect(keywords).toEqual([
      "250-PIPELINING",
      "250-8BITMIME",
      "250-SMTPUTF8",
      "250-ENHANCEDSTATUSCODES",
      "250-STARTTLS",
      "250 SIZE 31457280",
    ]);
  });

  test("takes a mail command by command", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      ["HELO client.example", "250 "],
      ["NOOP", "250 2.0.0"],
      [`MAIL FROM:<${sender}>`, ["250 2.1.0 Accepted"]],
      [`RCPT TO:<${room.inbox.address}>`, ["250 2.1.5 Accepted"]],
      ["DATA", "354 "],
    ]);
    client.write(rawMail({ from: sender }));
    expect(await client.say("\r\n.")).toBe("250 2.6.0 Message accepted");
    expect(await client.say("QUIT")).toStartWith("221 ");
    expect(await room.activity()).toMatchObject([{ status: "received", source: "email", sender }]);
  });

  test("offers no login, tells nothing by VRFY and EXPN, and knows no other commands", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250-"],
      ["AUTH PLAIN AGFkYQBzZWNyZXQ=", "500 5."],
      [`VRFY ${room.inbox.address}`, "252 2."],
      ["VRFY nobody@mw.test", "252 2."],
      ["EXPN staff", "500 5."],
      ["BDAT 10", "500 5."],
      ["XYZZY", "500 5."],
    ]);
  });

  test("insists on the order of the commands", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      [`MAIL FROM:<${sender}>`, "503 5."],
      ["EHLO client.example", "250-"],
      [`RCPT TO:<${room.inbox.address}>`, "503 5."],
      ["DATA", "503 5."],
      [`MAIL FROM:<${sender}>`, "250 "],
      ["DATA", "503 5."],
      [`MAIL FROM:<${sender}>`, "503 5."],
      ["MAIL FROM:nonsense", "501 5."],
    ]);
  });

  test("forgets the transaction at RSET", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250-"],
      [`MAIL FROM:<${sender}>`, "250 "],
      [`RCPT TO:<${room.inbox.address}>`, "250 "],
      ["RSET", "250 2.0.0"],
      ["DATA", "503 "],
    ]);
    expect(
      await client.deliver({ from: sender, to: room.inbox.address, raw: rawMail({ from: sender }) }),
    ).toStartWith("250 2.6.0");
    expect(await room.activity()).toHaveLength(1);
  });

  test("answers a pipelined transaction in order, and the next one on the same connection", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.say("EHLO client.example");
    for (const id of ["first", "second"]) {
      client.write(
        `MAIL FROM:<${sender}>\r\nRCPT TO:<nobody@mw.test>\r\nRCPT TO:<${room.inbox.address}>\r\nDATA\r\n`,
      );
      const replies = [
        await client.reply(),
        await client.reply(),
        await client.reply(),
        await client.reply(),
      ];
      expect(replies.map((reply) => reply.slice(0, 9))).toEqual([
        "250 2.1.0",
        "550 5.1.1",
        "250 2.1.5",
        "354 End d",
      ]);
      client.write(rawMail({ from: sender, headers: { "Message-ID": `<${id}@example.com>` } }));
      expect(await client.say("\r\n.")).toStartWith("250 2.6.0");
    }
    expect(await room.activity()).toHaveLength(2);
  });

  test("goes on encrypted after STARTTLS, with a certificate of its own name, and offers it no second time", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.say("EHLO client.example");
    expect(await client.startTls()).toBe("mx.mw.test");
    await client.script([["MAIL FROM:<ada@example.com>", "503 "]]);
    const hello = await client.say("EHLO client.example");
    expect(hello).not.toContain("STARTTLS");
    expect(hello).toContain("250-SMTPUTF8");
    expect(
      await client.deliver({ from: sender, to: room.inbox.address, raw: rawMail({ from: sender }) }),
    ).toStartWith("250 2.6.0");
    expect(await client.say("STARTTLS")).toStartWith("5");
  });

  test("discards what was sent in the clear behind STARTTLS", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.say("EHLO client.example");
    client.write("STARTTLS\r\nMAIL FROM:<injected@example.com>\r\n");
    expect(await client.reply()).toStartWith("220 ");
  });

  test("refuses a command line of more than 2,048 octets, and takes one just below", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.say("EHLO client.example");
    expect(await client.say(`NOOP ${"x".repeat(2_000)}`)).toStartWith("250 ");
    const reply = await client.say(`NOOP ${"x".repeat(3_000)}`);
    expect(reply).toStartWith("421 ");
    await client.closed;
  });

  test("turns away more connections of one address than allowed, until one of them ends", async () => {
    await using room = await mailroom({
      config: { smtp: { trusted_networks: [], max_connections_per_address: 2 } },
    });
    await using first = await smtpClient(room.door);
    const second = await smtpClient(room.door);
    await using third = await smtpClient(room.door);
    expect([first.greeting.slice(0, 4), second.greeting.slice(0, 4)]).toEqual(["220 ", "220 "]);
    expect(third.greeting).toStartWith("421 ");
    await third.closed;
    await second[Symbol.asyncDispose]();
    // The server hears of the closing a moment later.
    let again = await smtpClient(room.door);
    while (again.greeting.startsWith("421")) again = await smtpClient(room.door);
    expect(again.greeting).toStartWith("220 ");
    await again[Symbol.asyncDispose]();
  });

  test("turns away who talks before the greeting", async () => {
    await using room = await mailroom({ config: { smtp: { early_talker_ms: 200 } } });
    const hasty = connect(room.door.port, room.door.host);
    await once(hasty, "connect");
    hasty.write("EHLO client.example\r\n");
    const [reply] = (await once(hasty, "data")) as [Buffer];
    expect(reply.toString()).toStartWith("421 ");
    await once(hasty, "close");
  });

  test("counts no connection that left before it was greeted", async () => {
    await using room = await mailroom({
      config: { smtp: { trusted_networks: [], max_connections_per_address: 2, early_talker_ms: 50 } },
    });
    await using first = await smtpClient(room.door);
    await using second = await smtpClient(room.door);
    expect([first.greeting.slice(0, 4), second.greeting.slice(0, 4)]).toEqual(["220 ", "220 "]);
    for (let count = 0; count < 3; count++) {
      const hasty = connect(room.door.port, room.door.host);
      await once(hasty, "connect");
      hasty.destroy();
      await once(hasty, "close");
    }
    await using third = await smtpClient(room.door);
    expect(third.greeting).toStartWith("421 ");
  });

  test("asks to try again when the database fails, at the recipient and at the mail", async () => {
    await using room = await mailroom();
    await sql`alter table raw_mails rename to away`.execute(room.app.db);
    expect(await room.send({})).toStartWith("451 4.3.0 ");
    expect(await room.activity()).toEqual([]);
    await sql`alter table away rename to raw_mails`.execute(room.app.db);
    expect(await room.send({})).toStartWith("250 ");
    await sql`alter table inboxes rename to away`.execute(room.app.db);
    expect(await room.send({})).toStartWith("451 4.3.0 ");
  });
});

describe("recipients", () => {
  test("refuses an address it does not have, and to pass on mail for others", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250-"],
      [`MAIL FROM:<${sender}>`, "250 "],
      ["RCPT TO:<nobody@mw.test>", "550 5.1.1 "],
      ["RCPT TO:<NOBODY+tag@MW.test>", "550 5.1.1 "],
      ["RCPT TO:<someone@elsewhere.example>", "550 5.7.1 "],
      [`RCPT TO:<${room.inbox.address.replace("@", "%elsewhere.example@")}>`, "550 5.1.1 "],
      ["RCPT TO:<>", "501 5."],
      ["DATA", "503 "],
    ]);
  });

  test("refuses the address of an inbox that was deleted", async () => {
    await using room = await mailroom();
    await room.owner.delete(`/inboxes/${room.inbox.id}`);
    expect(await room.send({})).toStartWith("550 5.1.1 ");
  });

  test("refuses the 101st, and delivers to the hundred before", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250-"],
      [`MAIL FROM:<${sender}>`, "250 "],
    ]);
    const tagged = (number: number) => room.inbox.address.replace("@", `+n${number}@`);
    for (let number = 1; number <= 100; number++)
      expect(await client.say(`RCPT TO:<${tagged(number)}>`)).toStartWith("250 ");
    expect(await client.say(`RCPT TO:<${tagged(101)}>`)).toStartWith("452 4.5.3 ");
    await client.say("DATA");
    client.write(rawMail({ from: sender }));
    expect(await client.say("\r\n.")).toStartWith("250 2.6.0");
    expect(await room.activity()).toMatchObject([{ duplicates: 99 }]);
  });

  test("finds the inbox in any case, with a +tag, and when it stands in no header (Bcc)", async () => {
    await using room = await mailroom();
    const { address } = room.inbox;
    for (const rcpt of [address.toUpperCase(), address.replace("@", "+Invoices@"), address])
      expect(await room.send({ rcpt, to: "someone@elsewhere.example", text: rcpt })).toStartWith("250 2.6.0");
    expect(await room.activity()).toMatchObject([
      { inbox_id: room.inbox.id, status: "received" },
      { inbox_id: room.inbox.id, status: "received" },
      { inbox_id: room.inbox.id, status: "received" },
    ]);
  });

  test("gives several inboxes in one transaction each their own verdict", async () => {
    await using room = await mailroom();
    const { body: listed } = await room.owner.post("/inboxes", { allowlist_senders: ["bob@example.org"] });
    const { body: closed } = await room.owner.post("/inboxes", { allowlist_senders: ["eve@example.net"] });
    const rcpt = [closed.address, room.inbox.address, listed.address];
    expect(await room.send({ from: "bob@example.org", rcpt, text: "Hello" })).toStartWith("250 2.6.0");
    const rows = await room.activity();
    const verdicts = rows.map(({ inbox_id, status, reason }) => ({ inbox_id, status, reason }));
    expect(verdicts).toContainEqual({ inbox_id: room.inbox.id, status: "received", reason: null });
    expect(verdicts).toContainEqual({ inbox_id: listed.id, status: "received", reason: null });
    expect(verdicts).toContainEqual({ inbox_id: closed.id, status: "rejected", reason: "not_allowlisted" });
    const { rawMails } = await room.app.db
      .selectFrom("raw_mails")
      .select((eb) => eb.fn.countAll<number>().as("rawMails"))
      .executeTakeFirstOrThrow();
    expect(rawMails).toBe(1);
  });

  test("refuses in the session when no inbox takes the mail", async () => {
    await using room = await mailroom({ inbox: { allowlist_senders: ["eve@example.net"] } });
    expect(await room.send({ from: "bob@example.org" })).toStartWith("550 5.7.1 ");
    expect(await room.activity()).toMatchObject([
      { status: "rejected", reason: "not_allowlisted", sender: "bob@example.org", subject: "Hello" },
    ]);
  });

  test("takes letters beyond ASCII in addresses, header and text (SMTPUTF8)", async () => {
    await using room = await mailroom();
    await using client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250-"],
      ["MAIL FROM:<jürgen@example.org> SMTPUTF8 BODY=8BITMIME", "250 "],
      [`RCPT TO:<${room.inbox.address}>`, "250 "],
      ["DATA", "354 "],
    ]);
    client.write(rawMail({ from: "Jürgen <jürgen@example.org>", subject: "Grüße", text: "Schöne Grüße" }));
    expect(await client.say("\r\n.")).toStartWith("250 2.6.0");
    await room.drain();
    expect(await room.activity()).toMatchObject([
      { sender: "jürgen@example.org", subject: "Grüße", status: "done", reply_status: "sent" },
    ]);
    expect(await room.outgoing()).toMatchObject([{ envelope_to: "jürgen@example.org" }]);
  });
});

describe("what is too large or malformed", () => {
  test("fills the activity of an inbox with no more than two hundred lines an hour, and one that counts the rest", async () => {
    await using room = await mailroom({ inbox: { allowlist_senders: ["eve@example.net"] } });
    await using client = await smtpClient(room.door);
    await client.say("EHLO client.example");
    const mail = {
      from: "bob@example.org",
      to: room.inbox.address,
      raw: rawMail({ from: "bob@example.org" }),
    };
    for (let count = 0; count < 205; count++) {
      expect(await client.deliver(mail)).toStartWith("550 5.7.1 ");
      await client.say("RSET");
    }
    expect(await rows(room)).toBe(201);
    room.clock.advance("61m");
    await client.deliver(mail);
    expect(await rows(room)).toBe(202);
  });

  test("is refused at MAIL when its declared size is over the limit", async () => {
    await using room = await mailroom({ config: { smtp: { max_message_bytes: 4 * KB } } });
    await using client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250-"],
      [
        `MAIL FROM:<${sender}> SIZE=${4 * KB + 1}`,
        "552 5.3.4 The mail is larger than 4 KB, the most that this server takes.",
      ],
      [`MAIL FROM:<${sender}> SIZE=${4 * KB}`, "250 "],
    ]);
  });

  test("is refused after its end when the size was not declared, and logged without its text", async () => {
    await using room = await mailroom({ config: { smtp: { max_message_bytes: 4 * KB } } });
    const answer = await room.send({ subject: "Secret", text: `${"x".repeat(70)}\n`.repeat(100) });
    expect(answer).toStartWith("552 5.3.4 The mail is larger than 4 KB, the most that this server takes");
    expect(await room.activity()).toMatchObject([{ status: "rejected", reason: "too_large", subject: null }]);
    expect(await room.app.db.selectFrom("raw_mails").select("id").execute()).toEqual([]);
    expect(await room.send({ text: "small" })).toStartWith("250 ");
  });

  test("is refused when it has passed more than thirty servers", async () => {
    await using room = await mailroom();
    const hops = (count: number) => ({
      headers: { Received: Array.from({ length: count }, (_, index) => `from h${index}.example; today`) },
    });
    expect(await room.send({ ...hops(31), text: "31" })).toStartWith("554 5.4.6 ");
    expect(await room.send({ ...hops(30), text: "30" })).toStartWith("250 ");
    expect(await room.activity()).toMatchObject([
      { status: "received" },
      { status: "rejected", reason: "loop", error: expect.stringContaining("30 servers") },
    ]);
  });

  test("is refused when its header section is over 64 KB", async () => {
    await using room = await mailroom();
    const padding = Array.from({ length: 70 }, () => "x".repeat(950));
    expect(await room.send({ headers: { "X-Padding": padding } })).toStartWith("552 5.3.4 ");
    expect(await room.activity()).toMatchObject([{ status: "rejected", reason: "too_large" }]);
  });

  const BAD_FROM: [claim: string, from: string[]][] = [
    ["without a From field", []],
    ["with two From fields", ["From: ada@example.com", "From: eve@example.net"]],
    ["with two addresses in its From field", ["From: ada@example.com, eve@example.net"]],
    ["with a From field without an address", ["From: Ada"]],
    ["with a group in its From field", ["From: Us: ada@example.com;"]],
  ];
  test.each(BAD_FROM)("is refused %s", async (_claim, from) => {
    await using room = await mailroom();
    const raw = Buffer.from([...from, "Subject: Who?", "", "Hello", ""].join("\r\n"));
    expect(await room.send({ raw })).toStartWith("550 5.6.0 ");
    expect(await room.activity()).toMatchObject([
      { status: "rejected", reason: "bad_from", subject: "Who?" },
    ]);
    expect(await room.outgoing()).toEqual([]);
  });

  test("has no more memory than eight of the largest mails; the largest on its way is put off", async () => {
    await using room = await mailroom({ config: { smtp: { max_message_bytes: 64 * KB } } });
    await using stack = new AsyncDisposableStack();
    const clients = await Promise.all(Array.from({ length: 10 }, () => smtpClient(room.door)));
    for (const client of clients) stack.use(client);
    const line = `${"x".repeat(98)}\r\n`;
    for (const [index, client] of clients.entries()) {
      await client.script([
        ["EHLO client.example", "250-"],
        [`MAIL FROM:<${sender}>`, "250 "],
        [`RCPT TO:<${room.inbox.address}>`, "250 "],
        ["DATA", "354 "],
      ]);
      // The last is a small one.
      const head = rawMail({ from: sender, ...freshId() }).toString();
      client.write(head + line.repeat(index === 9 ? 1 : 600));
    }
    // The server reads in the order of arrival, so a whole dialogue later it has read what was sent before.
    await room.send({ rcpt: "nobody@mw.test" });
    const replies = await Promise.all(clients.map((client) => client.say(".")));
    expect(replies.filter((reply) => reply.startsWith("452 4.3.1 "))).toHaveLength(1);
    expect(replies.filter((reply) => reply.startsWith("250 "))).toHaveLength(9);
    expect(replies[9]).toStartWith("250 ");
    const later = await room.send({ text: line.repeat(600) });
    expect(later).toStartWith("250 ");
  });

  test("is refused in one short line of ASCII, however long and odd its From is", async () => {
    await using room = await mailroom();
    const raw = Buffer.from(`From: ${"ü".repeat(900)}..@example.org\r\n\r\nHello\r\n`);
    const reply = await room.send({ raw });
    expect(reply).toMatch(/^550 5\.6\.0 [\x20-\x7e]+$/);
    expect(reply.length).toBeLessThan(510);
  });

  test("ends with the connection when a client leaves in the middle, and nothing is kept of it", async () => {
    await using room = await mailroom();
    const client = await smtpClient(room.door);
    await client.script([
      ["EHLO client.example", "250-"],
      [`MAIL FROM:<${sender}>`, "250 "],
      [`RCPT TO:<${room.inbox.address}>`, "250 "],
      ["DATA", "354 "],
    ]);
    client.write("From: ada@example.com\r\n\r\nHalf a ma");
    await client[Symbol.asyncDispose]();
    expect(
      await deliver(room.door, { from: sender, to: room.inbox.address, raw: rawMail({ from: sender }) }),
    ).toStartWith("250 ");
    expect(await room.activity()).toHaveLength(1);
    expect(room.app.metrics.counted("mailwright_mails_refused_total")).toEqual([]);
  });
});

async function rows(room: Mailroom): Promise<number> {
  const ids = await room.app.db.selectFrom("messages").select("id").execute();
  return ids.length;
}
