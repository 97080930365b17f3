import { describe, expect, test } from "bun:test";
import { requestCode } from "../../src/resources/accounts/codes.ts";
import type { App } from "../../src/app.ts";
import type { ConfigOverrides } from "../../src/config/config.ts";
import { prepareLetter } from "../../src/mail/writing/letters.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom, type Mailroom } from "../support/mailroom.ts";
import { type SinkOptions, startSmtpSink } from "../support/smtp-sink.ts";
import { until } from "../support/until.ts";

const relay = (port: number): ConfigOverrides => ({
  outbound: { mode: "relay", relay_url: `smtp://127.0.0.1:${port}`, retry: [60, 300] },
});

describe("through a relay", () => {
  test("the reply is handed over as it was signed", async () => {
    await using sink = await startSmtpSink();
    await using room = await mailroom({ config: relay(sink.port) });
    await answered(room);
    const [row] = await room.outgoing();
    expect(sink.mails).toHaveLength(1);
    expect(sink.mails[0]).toMatchObject({ mail_from: row?.envelope_from, rcpt_to: ["ada@example.com"] });
    expect(sink.mails[0]?.raw.equals(Buffer.from(row?.raw ?? []))).toBe(true);
    expect(await room.activity()).toMatchObject([
      { status: "done", reply_status: "sent", reply_error: null },
    ]);
  });

  test("a notice of failure goes out with the null sender", async () => {
    await using sink = await startSmtpSink();
    await using room = await mailroom({ config: relay(sink.port), model: { fault: "unauthorized" } });
    await answered(room);
    expect(sink.mails).toMatchObject([{ mail_from: "", rcpt_to: ["ada@example.com"] }]);
  });

  test("a reply put off is tried again by the schedule, the same mail each time, until it is taken", async () => {
    const { sink, tried } = await moody([451, 451]);
    await using _sink = sink;
    await using room = await mailroom({ config: relay(sink.port) });
    await answered(room);
    expect(await room.activity()).toMatchObject([
      { status: "done", reply_status: "deferred", reply_error: expect.stringContaining("not today") },
    ]);
    room.clock.advance("59s");
    await room.drain();
    expect(tried).toHaveLength(1);
    room.clock.advance("1s");
    await room.drain();
    expect(tried).toHaveLength(2);
    room.clock.advance("300s");
    await room.drain();
    expect(tried).toHaveLength(3);
    expect(new Set(tried.map((raw) => raw.toString())).size).toBe(1);
    expect(sink.mails).toHaveLength(1);
    expect(await room.activity()).toMatchObject([{ reply_status: "sent", reply_error: null }]);
  });

  test("a reply put off to the end of the schedule is given up as bounced", async () => {
    const { sink, tried } = await moody([451, 451, 451, 451]);
    await using _sink = sink;
    await using room = await mailroom({ config: relay(sink.port) });
    await answered(room);
    for (const pause of ["60s", "300s", "1d", "7d"]) {
      room.clock.advance(pause);
      await room.drain();
    }
    // The owner is told of it in a letter.
    const isTold = (raw: Buffer) => raw.includes("An answer could not be delivered");
    expect([tried.filter(isTold).length, tried.length]).toEqual([2, 5]);
    expect(await room.activity()).toMatchObject([
      {
        status: "done",
        reply_status: "bounced",
        reply_error: expect.stringMatching(/last retry.*not today/),
      },
    ]);
    expect((await room.outgoing())[0]).toMatchObject({ attempts: 3, status: "bounced" });
  });

  test("a reply that is refused for good is bounced at once, with the server's words", async () => {
    await using sink = await startSmtpSink({ reject: () => "550 5.1.1 no such mailbox" });
    await using room = await mailroom({ config: relay(sink.port) });
    await answered(room);
    expect(await room.activity()).toMatchObject([
      { status: "done", reply_status: "bounced", reply_error: expect.stringContaining("no such mailbox") },
    ]);
    room.clock.advance("1d");
    await room.drain();
    expect(sink.connections).toBe(1);
    expect(await room.activity()).toHaveLength(1);
  });

  test("a relay that is down puts the reply off", async () => {
    const sink = await startSmtpSink();
    await sink[Symbol.asyncDispose]();
    await using room = await mailroom({ config: relay(sink.port) });
    await answered(room);
    expect(await room.activity()).toMatchObject([
      { reply_status: "deferred", reply_error: expect.stringContaining("could not be reached") },
    ]);
  });
});

describe("directly", () => {
  test("the reply goes to the mail server that the recipient's domain names", async () => {
    await using sink = await startSmtpSink();
    await using dns = await startDnsServer({
      "example.com": { MX: [[10, "mail.example.com"]] },
      "mail.example.com": { A: ["127.0.0.1"] },
    });
    await using room = await mailroom({ config: direct(dns.address), parts: { smtp_port: sink.port } });
    await answered(room);
    expect(sink.mails).toMatchObject([{ rcpt_to: ["ada@example.com"], secure: true }]);
    expect(await room.activity()).toMatchObject([{ reply_status: "sent" }]);
  });

  test("many mails to a slow domain leave room for those to another", async () => {
    await using slow = await startSmtpSink();
    await using quick = await startSmtpSink({ host: "127.0.0.2", port: slow.port });
    await using dns = await startDnsServer({
      "slow.example": { MX: [[10, "mail.slow.example"]] },
      "mail.slow.example": { A: ["127.0.0.1"] },
      "quick.example": { MX: [[10, "mail.quick.example"]] },
      "mail.quick.example": { A: ["127.0.0.2"] },
    });
    await using room = await mailroom({ config: direct(dns.address), parts: { smtp_port: slow.port } });
    slow.fault = "hang";
    const letter = { user_id: room.owner.user.id, subject: "Hello", markdown: "Hello" };
    const queued = await Promise.all([
      ...Array.from({ length: 70 }, () => prepareLetter(room.app, { ...letter, to: "ann@slow.example" })),
      prepareLetter(room.app, { ...letter, to: "bob@quick.example" }),
    ]);
    await room.app.write(async (tx) => {
      for (const queue of queued) await queue(tx);
    });
    room.app.worker?.start();
    expect((await quick.next()).rcpt_to).toEqual(["bob@quick.example"]);
    expect(slow.connections).toBeLessThanOrEqual(8);
    slow.fault = undefined;
    slow.cut();
    for (let mail = 0; mail < 60; mail++) await slow.next();
  });

  test("codes that a stranger asks for, to any number of addresses that take them slowly, leave room for answers", async () => {
    await using slow = await startSmtpSink();
    await using quick = await startSmtpSink({ host: "127.0.0.2", port: slow.port });
    const domains = Array.from({ length: 16 }, (_, at) => `slow${at}.example`);
    await using dns = await slowBesideQuick(domains);
    await using room = await mailroom({ config: direct(dns.address), parts: { smtp_port: slow.port } });
    slow.fault = "hang";
    room.app.worker?.start();
    const asker = { token: "a", client: "192.0.2.1", known: undefined };
    for (let at = 0; at < 100; at++)
      await requestCode(room.app, `u${at}@${domains[at % domains.length]}`, asker);
    await standstill(room.app, 100);
    const queue = await prepareLetter(room.app, {
      user_id: room.owner.user.id,
      to: "bob@quick.example",
      subject: "Hello",
      markdown: "Hello",
    });
    await room.app.write(queue);
    expect((await quick.next()).rcpt_to).toEqual(["bob@quick.example"]);
    slow.fault = "refuse";
    slow.cut();
  });

  test("many mails to slow subdomains leave room for those to another domain", async () => {
    await using slow = await startSmtpSink();
    await using quick = await startSmtpSink({ host: "127.0.0.2", port: slow.port });
    const domains = Array.from({ length: 8 }, (_, at) => `d${at}.slow.example`);
    await using dns = await slowBesideQuick(domains);
    await using room = await mailroom({ config: direct(dns.address), parts: { smtp_port: slow.port } });
    slow.fault = "hang";
    const letter = { user_id: room.owner.user.id, subject: "Hello", markdown: "Hello" };
    const queued = await Promise.all([
      ...Array.from({ length: 64 }, (_, at) =>
        prepareLetter(room.app, { ...letter, to: `ann@${domains[at % domains.length]}` }),
      ),
      prepareLetter(room.app, { ...letter, to: "bob@quick.example" }),
    ]);
    await room.app.write(async (tx) => {
      for (const queue of queued) await queue(tx);
    });
    room.app.worker?.start();
    expect((await quick.next()).rcpt_to).toEqual(["bob@quick.example"]);
    expect(await sending(room.app)).toBeLessThanOrEqual(9);
    slow.fault = "refuse";
    slow.cut();
  });

  test("a domain that does not exist bounces the reply, and a silent DNS puts it off", async () => {
    await using dns = await startDnsServer();
    await using room = await mailroom({ config: direct(dns.address) });
    await answered(room);
    // Such an answer of the DNS is believed only after hours.
    for (let hour = 0; hour < 24; hour += 2) {
      room.clock.advance("2h");
      await room.drain();
    }
    dns.fault("*", "servfail");
    await answered(room, "Bob <bob@example.org>");
    expect(await room.activity()).toMatchObject([{ reply_status: "deferred" }, { reply_status: "bounced" }]);
  });

  test("a private address is not dialled, whatever the DNS says", async () => {
    await using sink = await startSmtpSink();
    await using dns = await startDnsServer({
      "example.com": { MX: [[10, "m.example.com"]] },
      "m.example.com": { A: ["127.0.0.1"] },
    });
    const { egress: _, ...config } = direct(dns.address);
    await using room = await mailroom({ config, parts: { smtp_port: sink.port } });
    await answered(room);
    expect(sink.connections).toBe(0);
    expect((await room.activity())[0].reply_status).not.toBe("sent");
  });
});

const direct = (dns: string): ConfigOverrides => ({
  outbound: { mode: "direct" },
  dns: { servers: [dns] },
  egress: { allow: ["127.0.0.0/8"] },
});

/** A sink that answers the first mails with these codes, and what it was offered. */
async function moody(codes: number[], options: SinkOptions = {}) {
  const tried: Buffer[] = [];
  const left = [...codes];
  const reject_mail = (raw: Buffer): string | undefined => {
    tried.push(raw);
    const code = left.shift();
    return code === undefined ? undefined : `${code} not today`;
  };
  return { sink: await startSmtpSink({ ...options, reject_mail }), tried };
}

/** How many mails are on their way. */
async function sending(app: App): Promise<number> {
  return (await sendJobs(app)).filter(({ status }) => status === "running").length;
}

/** Until so many mails are queued, and no more of them begin. */
async function standstill(app: App, mails: number): Promise<void> {
  await until(async () => (await sendJobs(app)).length >= mails);
  for (let before = -1; before !== (await sending(app)); await Bun.sleep(100)) before = await sending(app);
}

function sendJobs(app: App) {
  return app.db.selectFrom("jobs").select("status").where("kind", "=", "send_mail").execute();
}

async function answered(room: Mailroom, from = "Ada <ada@example.com>"): Promise<void> {
  expect(await room.send({ from })).toStartWith("250 ");
  await room.drain();
}

/** A name server that has one slow mail server for all the `domains`, and a quick one for quick.example. */
function slowBesideQuick(domains: string[]) {
  return startDnsServer({
    ...Object.fromEntries(domains.map((domain) => [domain, { MX: [[10, "mail.slow.example"]] }])),
    "mail.slow.example": { A: ["127.0.0.1"] },
    "quick.example": { MX: [[10, "mail.quick.example"]] },
    "mail.quick.example": { A: ["127.0.0.2"] },
  });
}
