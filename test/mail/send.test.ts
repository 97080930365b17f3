import { describe, expect, test } from "bun:test";

import { createResolver } from "../../src/net/dns.ts";
import { createSender, type SenderOptions } from "../../src/mail/sending/send.ts";
import { at, direct, MAIL, SHORT } from "../support/direct.ts";
import type { DnsZone } from "../support/dns-server.ts";
import { type SinkOptions, startSmtpSink } from "../support/smtp-sink.ts";
import { startClock } from "../support/own-time.ts";

/** More than sockets keep on their way. */
const LONG = {
  ...MAIL,
  raw: Buffer.concat([MAIL.raw, Buffer.from(`${"x".repeat(70)}\r\n`.repeat(400_000))]),
};

/** Nobody of a session that is open already notices. */
const isBeforeSender = (fault: string): boolean => fault === "refuse" || fault === "hang";

describe("capture", () => {
  test("sends nothing, and says why the mail waits", async () => {
    await using sender = createSender({ ...(await offline()), mode: "capture" });
    expect(await sender.send(MAIL)).toEqual({
      status: "deferred",
      response: 'outbound.mode is "capture"; what was queued for delivery waits for "relay" or "direct"',
    });
  });
});

describe.each(["relay", "direct"])("whoever sends (%s)", (mode) => {
  test("hears that a server wants the mail once it does, before it has said what becomes of it", async () => {
    const said: string[] = [];
    const server: SinkOptions = {
      reject: (address) => (address.startsWith("nobody@") ? "550 5.1.1 no such mailbox" : undefined),
      beforeWord: async () => void said.push("word"),
    };
    await using t = await (mode === "relay" ? relay(server) : direct([server], ONE));
    const send = (envelope_to: string) =>
      t.sender.send({ ...MAIL, envelope_to }, () => void said.push(`${envelope_to} begins`));
    expect(await send("nobody@there.example")).toMatchObject({ status: "failed" });
    expect(await send("ann@there.example")).toMatchObject({ status: "sent" });
    expect(said).toEqual(["ann@there.example begins", "word"]);
  });

  test("gives a mail to nobody that must not go out any more by then, and the next one goes", async () => {
    let taken = 0;
    const server: SinkOptions = { beforeWord: async () => void (taken += 1) };
    await using t = await (mode === "relay" ? relay(server) : direct([server], ONE));
    const send = (envelope_to: string, onBegin: () => void) =>
      t.sender.send({ ...MAIL, envelope_to }, onBegin);
    const refuse = (): void => {
      throw new Error("not any more");
    };
    expect(await send("ann@there.example", refuse)).toMatchObject({ status: "deferred" });
    expect(await send("bob@there.example", () => undefined)).toMatchObject({ status: "sent" });
    expect(taken).toBe(1);
  });
});

describe("a relay at a port for the other kind of TLS", () => {
  test.each([
    [
      "from the first byte, which it does not speak there",
      { scheme: "smtps" },
      /^The relay 127\.0\.0\.1 could not be reached: it speaks no TLS from the first byte at port \d+\. In outbound\.relay_url, write smtp:\/\/ for this port, which uses STARTTLS, or take port 465\.$/,
    ],
    [
      "by STARTTLS, while it waits for a handshake",
      { implicit_tls: true },
      /could not be reached: it says nothing at port \d+, as one does that waits for TLS from the first byte\. In outbound\.relay_url, write smtps:\/\/ /,
    ],
  ] as const)("%s, is named with its mend", async (_claim, options, response) => {
    await using t = await relay(options);
    expect(await t.sender.send(MAIL)).toEqual({
      status: "deferred",
      response: expect.stringMatching(response),
      of_relay: true,
    });
  });
});

describe("relay", () => {
  test("gets the mail byte for byte with its envelope", async () => {
    await using t = await relay();
    expect(await t.sender.send(MAIL)).toMatchObject({
      status: "sent",
      response: "250 kept",
      mx: "127.0.0.1",
    });
    expect(t.sink.mails).toEqual([
      {
        raw: MAIL.raw,
        mail_from: "b+1@me.example",
        rcpt_to: ["ann@there.example"],
        secure: true,
        user: undefined,
      },
    ]);
  });

  test("gets the null sender of a notice", async () => {
    await using t = await relay();
    await t.sender.send({ ...MAIL, envelope_from: "" });
    expect((await t.sink.next()).mail_from).toBe("");
  });

  test("gets addresses of internationalised domains as A-labels", async () => {
    // Without SMTPUTF8 the domain could not be named in any other way.
    await using t = await relay({ smtputf8: false });
    await t.sender.send({ ...MAIL, envelope_to: "ann@bücher.example" });
    expect((await t.sink.next()).rcpt_to).toEqual(["ann@bücher.example"]);
  });

  test("is given an address with letters beyond ASCII only if it takes such, and else the mail is failed at once", async () => {
    const mail = { ...MAIL, envelope_to: "jürgen@there.example" };
    await using able = await relay();
    expect(await able.sender.send(mail)).toMatchObject({ status: "sent" });
    expect((await able.sink.next()).rcpt_to).toEqual(["jürgen@there.example"]);
    await using unable = await relay({ smtputf8: false });
    const outcome = await unable.sender.send(mail);
    expect(outcome).toMatchObject({
      status: "failed",
      enhanced: "5.6.7",
      response: expect.stringMatching(/^The relay 127\.0\.0\.1 takes no addresses with letters beyond ASCII/),
    });
    // Others go out as before.
    expect(await unable.sender.send(MAIL)).toMatchObject({ status: "sent" });
    expect(unable.sink.mails).toHaveLength(1);
  });

  test("is given many mails over few connections, which are kept", async () => {
    await using t = await relay();
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => t.sender.send(MAIL)));
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 40 }, () => "sent"));
    expect(t.sink.mails).toHaveLength(40);
    expect(t.sink.connections).toBeLessThanOrEqual(10);
  });

  test("is given the user and password of its URL, decoded", async () => {
    await using t = await relay({ auth: { user: "me@x", password: "p:w/ü" } }, "me%40x:p%3Aw%2F%C3%BC@");
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    expect((await t.sink.next()).user).toBe("me@x");
  });

  test("that refuses the password puts the mail off and says what to check, without the password", async () => {
    await using t = await relay({ auth: { user: "me", password: "right" } }, "me:hunter2@");
    const outcome = await t.sender.send(MAIL);
    expect(outcome).toMatchObject({ status: "deferred", code: 535, enhanced: "5.7.8" });
    expect(outcome.response).toContain("Check outbound.relay_url");
    expect(JSON.stringify(outcome)).not.toContain("hunter2");
  });

  test.each([
    "530 5.7.0 Authentication required",
    "530 5.7.0 Must issue a STARTTLS command first",
    "554 5.7.1 <ann@example.com>: Relay access denied",
    "550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain",
    "550 5.7.1 Relaying not allowed",
    "553 5.7.1 <me@mw.test>: Sender address rejected: not logged in",
  ])("that takes nothing of this server (%p) puts the mail off and says what to set", async (reply) => {
    await using t = await relay({ reject: () => reply }, "");
    const outcome = await t.sender.send(MAIL);
    expect(outcome).toMatchObject({ status: "deferred", code: Number(reply.slice(0, 3)) });
    expect(outcome.response).toContain("Set the user and password in outbound.relay_url");
  });

  test.each(["550 5.1.1 No such user", "554 5.7.1 Blocked by our policy", "552 5.2.2 Mailbox full"])(
    "that refuses one mail (%p) is not asked again",
    async (reply) => {
      await using t = await relay({ reject: () => reply }, "");
      expect(await t.sender.send(MAIL)).toMatchObject({ status: "failed" });
    },
  );

  test("that offers no login although there is one for it puts the mail off and says so", async () => {
    await using t = await relay({ reject: () => "550 5.7.1 relaying denied" }, "me:hunter2@");
    const outcome = await t.sender.send(MAIL);
    expect(outcome.response).toContain("offers no login");
    expect(outcome.response).toContain("outbound.relay_url");
    expect(outcome).toMatchObject({ status: "deferred" });
    expect(JSON.stringify(outcome)).not.toContain("hunter2");
  });

  test("is spoken to in TLS from the first byte for smtps", async () => {
    await using sink = await startSmtpSink({ implicit_tls: true });
    await using sender = createSender({
      ...(await offline()),
      mode: "relay",
      relay_url: `smtps://127.0.0.1:${sink.port}`,
    });
    expect(await sender.send(MAIL)).toMatchObject({ status: "sent", tls: true });
    expect((await sink.next()).secure).toBe(true);
  });

  test("on a name must have a certificate for it, and gets neither mail nor password otherwise", async () => {
    await using sink = await startSmtpSink({ auth: { user: "me", password: "pw" } });
    // A name with a dot that leads to loopback without a DNS: the old short form of its address.
    await using sender = createSender({
      ...(await offline()),
      mode: "relay",
      relay_url: `smtp://me:pw@127.1:${sink.port}`,
    });
    const outcome = await sender.send(MAIL);
    expect(outcome.status).toBe("deferred");
    expect(outcome.response).toMatch(/TLS|certificate/);
    expect(sink.connections).toBe(1);
    expect(sink.mails).toEqual([]);
  });

  test("on a name gets no password in the clear when STARTTLS is not offered", async () => {
    await using sink = await startSmtpSink({ auth: { user: "me", password: "pw" }, starttls: false });
    await using sender = createSender({
      ...(await offline()),
      mode: "relay",
      relay_url: `smtp://me:pw@127.1:${sink.port}`,
    });
    const outcome = await sender.send(MAIL);
    expect(outcome.status).toBe("deferred");
    expect(outcome.response).toMatch(/TLS|certificate/);
    expect(sink.connections).toBe(1);
    expect(sink.mails).toEqual([]);
  });

  test("that the operator allows by its name gets the password in the clear where it has no TLS", async () => {
    await using sink = await startSmtpSink({ auth: { user: "me", password: "pw" }, starttls: false });
    await using sender = createSender({
      ...(await offline()),
      mode: "relay",
      relay_url: `smtp://me:pw@127.1:${sink.port}`,
      egress_allow: ["127.1"],
    });
    expect(await sender.send(MAIL)).toMatchObject({ status: "sent" });
  });

  test("that cannot be trusted with a password is told of with what can be done", async () => {
    await using sink = await startSmtpSink({ auth: { user: "me", password: "pw" }, starttls: false });
    await using sender = createSender({
      ...(await offline()),
      mode: "relay",
      relay_url: `smtp://me:pw@127.1:${sink.port}`,
    });
    const { response } = await sender.send(MAIL);
    expect(response).toContain("Check outbound.relay_url");
    expect(response).toContain('"127.1" to egress.allow');
  });

  test("that refuses the recipient for good fails the mail, and the next one still goes", async () => {
    await using t = await relay({
      reject: (address) => (address.startsWith("no") ? "550 5.1.1 who?" : undefined),
    });
    expect(await t.sender.send({ ...MAIL, envelope_to: "nobody@there.example" })).toEqual({
      status: "failed",
      code: 550,
      enhanced: "5.1.1",
      response:
        "The relay 127.0.0.1 refused the mail for nobody@there.example: 550 5.1.1 who?. Check the address.",
    });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
  });

  test.each([
    ["refuse", "The relay 127.0.0.1 put the mail off: 421"],
    ["hang", "The relay 127.0.0.1 could not be reached: "],
    ["drop_at_sender", "The relay 127.0.0.1 was not given the mail: "],
    ["drop_in_middle", "The relay 127.0.0.1 broke off in the middle of the mail, so it does not have it: "],
    ["drop_in_data", "The relay 127.0.0.1 was given the whole mail and did not say that it has it, so"],
    ["hang_in_data", "The relay 127.0.0.1 was given the whole mail and did not say that it has it, so"],
  ] as const)("that does %s is said to have what it was given", async (fault, words) => {
    await using t = await relay();
    const said = { status: "deferred", response: expect.stringContaining(words) };
    t.sink.fault = fault;
    expect(await t.sender.send(LONG)).toMatchObject(said);
    expect(t.sink.mails).toEqual([]);
    if (isBeforeSender(fault)) return;
    // And over a session that was kept.
    t.sink.fault = undefined;
    await t.sender.send(MAIL);
    t.sink.fault = fault;
    expect(await t.sender.send(LONG)).toMatchObject(said);
    expect(t.sink.mails).toHaveLength(1);
  });

  test("gets long mails whole", async () => {
    await using t = await relay();
    expect(await t.sender.send(LONG)).toMatchObject({ status: "sent" });
    expect(t.sink.mails[0]?.raw.equals(LONG.raw)).toBe(true);
  });

  test.each(["refuse", "hang", "drop_at_sender", "drop_in_data", "hang_in_data"] as const)(
    "that does %s puts the mail off once, and is asked again for the next",
    async (fault) => {
      await using t = await relay();
      t.sink.fault = fault;
      expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred" });
      expect(t.sink.mails).toEqual([]);
      t.sink.fault = undefined;
      expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    },
  );

  test("that is not there puts the mail off", async () => {
    await using t = await relay();
    await t.sink[Symbol.asyncDispose]();
    const outcome = await t.sender.send(MAIL);
    expect(outcome.status).toBe("deferred");
    expect(outcome.response).toStartWith("The relay 127.0.0.1 could not be reached");
  });

  test("that never confirms a mail is given up when the time for that is over", async () => {
    await using sink = await startSmtpSink();
    sink.fault = "hang_in_data";
    await using sender = createSender({
      ...(await offline()),
      mode: "relay",
      relay_url: `smtp://127.0.0.1:${sink.port}`,
      timeouts: { attempt_ms: 30_000, confirm_ms: 200 },
    });
    expect(await sender.send(MAIL)).toEqual({
      status: "deferred",
      may_have_it: true,
      response:
        "The relay 127.0.0.1 was given the whole mail and did not say that it has it, so the mail may come twice: it did not answer in time",
    });
  });

  test("must be a URL, and the error does not repeat it", async () => {
    const options = { ...(await offline()), mode: "relay" as const, relay_url: "user:secret@" };
    expect(() => createSender(options)).toThrow("smtp://user:password@host:587");
    expect(() => createSender(options)).not.toThrow("secret");
  });
});

describe("direct", () => {
  test("gives the mail to the domain's server, encrypted though nobody vouches for the certificate", async () => {
    await using t = await direct([{}], { "there.example": { MX: [[10, "mx1.there.example"]] } });
    expect(await t.sender.send(MAIL)).toEqual({
      status: "sent",
      response: "250 kept",
      mx: "mx1.there.example",
      tls: true,
    });
    expect(t.sinks[0]?.mails).toEqual([
      {
        raw: MAIL.raw,
        mail_from: "b+1@me.example",
        rcpt_to: ["ann@there.example"],
        secure: true,
        user: undefined,
      },
    ]);
  });

  test("goes in the clear to a server without STARTTLS, and to one that offers it but cannot", async () => {
    for (const starttls of [false, "broken"] as const) {
      await using t = await direct([{ starttls }], { "there.example": { MX: [[10, "mx1.there.example"]] } });
      expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", tls: false });
      expect(t.sinks[0]?.mails.map(({ secure }) => secure)).toEqual([false]);
    }
  });

  test("prefers the server with the lowest number", async () => {
    await using t = await direct([{}, {}], {
      "there.example": {
        MX: [
          [20, "mx1.there.example"],
          [10, "mx2.there.example"],
        ],
      },
    });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", mx: "mx2.there.example" });
    expect(t.sinks.map(({ connections }) => connections)).toEqual([0, 1]);
  });

  test.each(["refuse", "hang", "drop_in_data"] as const)(
    "goes on to the next server after one that does %s",
    async (fault) => {
      await using t = await direct([{}, {}], BOTH);
      at(t.sinks, 0).fault = fault;
      expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", mx: "mx2.there.example" });
      expect(t.sinks.map(({ mails }) => mails.length)).toEqual([0, 1]);
    },
  );

  test("goes on to the next server after a 4xx, and after one without an address", async () => {
    await using t = await direct([{ reject: () => "450 4.2.0 greylisted" }, {}], {
      "there.example": {
        MX: [
          [5, "gone.there.example"],
          [10, "mx1.there.example"],
          [20, "mx2.there.example"],
        ],
      },
    });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", mx: "mx2.there.example" });
  });

  test.each([
    ["hang", "mx1.there.example could not be reached: "],
    ["drop_at_sender", "mx1.there.example was not given the mail: "],
    ["drop_in_middle", "mx1.there.example broke off in the middle of the mail, so it does not have it: "],
    ["drop_in_data", "mx1.there.example was given the whole mail and did not say that it has it, so"],
  ] as const)("says of a server that does %s what it was given", async (fault, words) => {
    await using t = await direct([{}], { "there.example": { MX: [[10, "mx1.there.example"]] } });
    at(t.sinks, 0).fault = fault;
    expect((await t.sender.send(LONG)).response).toStartWith(words);
    if (isBeforeSender(fault)) return;
    // And over a session that was kept.
    at(t.sinks, 0).fault = undefined;
    await t.sender.send(MAIL);
    at(t.sinks, 0).fault = fault;
    expect(await t.sender.send(LONG)).toMatchObject({
      status: "deferred",
      response: expect.stringContaining(words),
    });
  });

  test("a mail that one server may have is said to come twice, whatever the others do", async () => {
    await using t = await direct([{}, {}], BOTH);
    for (const [has, other] of [
      [0, 1],
      [1, 0],
    ] as const) {
      at(t.sinks, has).fault = "drop_in_data";
      at(t.sinks, other).fault = "drop_at_sender";
      const { response } = await t.sender.send(MAIL);
      expect(response).toStartWith(`mx${has + 1}.there.example was given the whole mail`);
    }
  });

  test("gets long mails whole", async () => {
    await using t = await direct([{}], { "there.example": { MX: [[10, "mx1.there.example"]] } });
    expect(await t.sender.send(LONG)).toMatchObject({ status: "sent" });
    expect(at(t.sinks, 0).mails[0]?.raw.equals(LONG.raw)).toBe(true);
  });

  test("is put off with the server's words when every server puts it off", async () => {
    const reject = (): string => "451 4.7.1 busy";
    await using t = await direct([{ reject }, { reject }], BOTH);
    expect(await t.sender.send(MAIL)).toEqual({
      status: "deferred",
      code: 451,
      enhanced: "4.7.1",
      response: "mx1.there.example put the mail off: 451 4.7.1 busy",
    });
    expect(t.sinks.map(({ connections }) => connections)).toEqual([1, 1]);
  });

  test("fails at once at a 5xx and asks no other server", async () => {
    await using t = await direct([{ reject: () => "550 5.1.1 no such mailbox" }, {}], BOTH);
    expect(await t.sender.send(MAIL)).toEqual({
      status: "failed",
      code: 550,
      enhanced: "5.1.1",
      response:
        "mx1.there.example refused the mail for ann@there.example: 550 5.1.1 no such mailbox. Check the address.",
    });
    expect(at(t.sinks, 1).connections).toBe(0);
  });

  test("fails with what to mend when the mail itself is refused after its end", async () => {
    await using t = await direct([{ reject_mail: () => "550 5.7.26 unauthenticated" }], ONE);
    const outcome = await t.sender.send(MAIL);
    expect(outcome).toMatchObject({ status: "failed", code: 550, enhanced: "5.7.26" });
    expect(outcome.response).toEndWith("Publish the SPF, DKIM and DMARC records of the sending domain.");
  });

  test("fails without an enhanced code where the server gives none", async () => {
    await using t = await direct([{ reject: () => "554 go away" }], ONE);
    expect(await t.sender.send(MAIL)).toEqual({
      status: "failed",
      code: 554,
      response: "mx1.there.example refused the mail for ann@there.example: 554 go away.",
    });
  });

  test("goes to the domain itself when it has no MX", async () => {
    await using t = await direct([{}], { "there.example": { A: ["127.0.0.1"] } });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", mx: "there.example" });
  });

  test("fails for a domain with a null MX, without a connection", async () => {
    await using t = await direct([{}], { "there.example": { MX: [[0, "."]], A: ["127.0.0.1"] } });
    expect(await t.sender.send(MAIL)).toEqual({
      status: "failed",
      enhanced: "5.1.10",
      response: "there.example takes no mail at all, as its DNS says. Check the address.",
    });
    expect(at(t.sinks, 0).connections).toBe(0);
  });

  test("fails for a domain that does not exist, and for servers that have no address", async () => {
    await using t = await direct([], { "there.example": { MX: [[10, "gone.example"]] } });
    expect(await t.sender.send({ ...MAIL, envelope_to: "ann@nowhere.example" })).toMatchObject({
      status: "failed",
      enhanced: "5.1.2",
    });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "failed", enhanced: "5.4.4" });
  });

  test("fails for what is no domain", async () => {
    await using t = await direct([], {});
    for (const envelope_to of ["ann@", "ann", "ann@[127.0.0.1]", "ann@a..b"]) {
      expect(await t.sender.send({ ...MAIL, envelope_to })).toMatchObject({ status: "failed" });
    }
  });

  test("tells of an address without a domain name by the address, and of hostile names without their controls", async () => {
    await using t = await direct([], {
      "there.example": { MX: [[10, "mx\u001b[31m\r\n250 there.example"]] },
    });
    const literal = await t.sender.send({ ...MAIL, envelope_to: "ann@[192.0.2.1]" });
    expect(literal).toMatchObject({ status: "failed", response: expect.stringContaining("ann@[192.0.2.1]") });
    const { status, response } = await t.sender.send(MAIL);
    expect(status).toBe("failed");
    expect(response).toContain("has no address in the DNS");
    expect(response).not.toMatch(/\p{Cc}/u);
  });

  test("is put off while the DNS fails, for the domain or for its server", async () => {
    await using t = await direct([{}], ONE);
    t.dns.fault("there.example", "servfail");
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred", enhanced: "4.4.3" });
    t.dns.fault("there.example", undefined);
    t.dns.fault("mx1.there.example", "servfail");
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred", enhanced: "4.4.3" });
  });

  test("connects to nothing inside of the private network that the operator has not allowed", async () => {
    await using t = await direct([{}], ONE, { egress_allow: [] });
    const outcome = await t.sender.send(MAIL);
    expect(outcome).toMatchObject({ status: "failed", enhanced: "5.4.4" });
    expect(outcome.response).toContain("egress.allow");
    expect(at(t.sinks, 0).connections).toBe(0);
  });

  test("connects to a private server that is allowed by its name", async () => {
    await using t = await direct([{}], ONE, { egress_allow: ["mx1.there.example"] });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
  });

  test("looks internationalised domains up and names them as A-labels", async () => {
    await using t = await direct([{ smtputf8: false }], {
      "xn--bcher-kva.example": { MX: [[10, "mx1.there.example"]] },
    });
    expect(await t.sender.send({ ...MAIL, envelope_to: "ann@Bücher.example" })).toMatchObject({
      status: "sent",
    });
    expect((await at(t.sinks, 0).next()).rcpt_to).toEqual(["ann@bücher.example"]);
  });

  test("gives an address with letters beyond ASCII only to a server that takes such", async () => {
    const mail = { ...MAIL, envelope_to: "jürgen@there.example" };
    await using able = await direct([{}], ONE);
    expect(await able.sender.send(mail)).toMatchObject({ status: "sent" });
    expect((await at(able.sinks, 0).next()).rcpt_to).toEqual(["jürgen@there.example"]);
    await using unable = await direct([{ smtputf8: false }], ONE);
    expect(await unable.sender.send(mail)).toMatchObject({ status: "failed", enhanced: "5.6.7" });
    expect(at(unable.sinks, 0).mails).toEqual([]);
  });

  test("cannot be made to speak commands by an address", async () => {
    await using t = await direct([{}], ONE);
    for (const envelope_from of ["a@b.example>\r\nRCPT TO:<v@w.example", "a\r\nDATA\r\n@b.example"]) {
      expect(await t.sender.send({ ...MAIL, envelope_from })).toMatchObject({ status: "failed" });
    }
    const to = "v@w.example>\r\nDATA\r\n<@there.example";
    expect(await t.sender.send({ ...MAIL, envelope_to: to })).toMatchObject({ status: "failed" });
    expect(at(t.sinks, 0).mails).toEqual([]);
  });

  test("is given up when the attempt's time is over, however many servers are left", async () => {
    await using t = await direct([{}, {}], BOTH, { timeouts: { attempt_ms: 150 } });
    for (const sink of t.sinks) sink.fault = "hang";
    using clock = startClock();
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "deferred" });
    expect(clock.ms()).toBeLessThan(5_000);
    expect(at(t.sinks, 1).connections).toBe(0);
  });

  test("names without an address are none of the five servers that are tried", async () => {
    const gone = Array.from({ length: 6 }, (_, at): [number, string] => [at, `old${at}.there.example`]);
    await using t = await direct([{}], { "there.example": { MX: [...gone, [50, "mx1.there.example"]] } });
    expect((await t.sender.send(MAIL)).status).toBe("sent");
    expect(t.sinks[0]?.mails).toHaveLength(1);
  });

  test.each([
    ["tries five servers at most", { A: ["127.0.0.1"] }, 5],
    ["looks for twenty names at most", {}, 20],
  ])("%s", async (_claim, zone, most) => {
    const names = Array.from({ length: 25 }, (_, index) => `m${10 + index}.there.example`);
    await using t = await direct([], {
      "there.example": { MX: names.map((name, index): [number, string] => [index, name]) },
      ...Object.fromEntries(names.map((name) => [name, zone])),
    });
    await t.sender.send(MAIL);
    const asked = new Set(t.dns.queries.filter(({ type }) => type === "A").map(({ name }) => name));
    expect([...asked].sort()).toEqual(names.slice(0, most));
  });
});

const ONE: DnsZone = { "there.example": { MX: [[10, "mx1.there.example"]] } };
const BOTH: DnsZone = {
  "there.example": {
    MX: [
      [10, "mx1.there.example"],
      [20, "mx2.there.example"],
    ],
  },
};

async function offline(): Promise<SenderOptions> {
  const resolver = createResolver({ servers: ["127.0.0.1:1"] });
  return {
    mode: "capture",
    relay_url: "",
    hostname: "me.example",
    resolver,
    egress_allow: [],
    timeouts: SHORT,
  };
}

async function relay(
  { scheme = "smtp", ...options }: SinkOptions & { scheme?: "smtp" | "smtps" } = {},
  login = "",
) {
  const sink = await startSmtpSink(options);
  const relay_url = `${scheme}://${login}127.0.0.1:${sink.port}`;
  const sender = createSender({ ...(await offline()), mode: "relay", relay_url, timeouts: SHORT });
  return {
    sink,
    sender,
    [Symbol.asyncDispose]: async () => {
      await sender[Symbol.asyncDispose]();
      await sink[Symbol.asyncDispose]();
    },
  };
}
