import { describe, expect, test } from "bun:test";
import { createThreadsBySize } from "../../src/lib/threads-by-size.ts";
import type { Examination, MailToExamine } from "../../src/inbound/examine.ts";
import { startDnsServer, type TestDnsServer } from "../support/dns-server.ts";
import {
  freshId,
  type Mailroom,
  mailroom,
  READS_ANYBODY,
  signedBy,
  signingZone,
} from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { signedRoom } from "../support/signed-room.ts";
import { deliver } from "../support/smtp-client.ts";
import { until } from "../support/until.ts";

const HELD = "../test/mail/fixtures/held-examiner-worker.ts";

/** Eight unanswered questions of 50 ms end a thread here; a mail that is tried again alone may take two and a half seconds. */
function heldExaminer({ ask_ms = 50 } = {}) {
  return createThreadsBySize<MailToExamine, Examination>(HELD, { ask_ms, alone_ms: 2_500 });
}

/** The lines of its log from this level on. */
function logged(room: Mailroom, level: "warn" | "error"): string[] {
  const lines: string[] = [];
  room.app.log[level] = (...words: unknown[]) => void lines.push(JSON.stringify(words));
  return lines;
}

/** Behind the words, what makes a mail too long to be read anywhere but on the thread. */
function long(words: string): string {
  return `${words}\n${"x".repeat(70)}\n`.padEnd(70_000, `${"x".repeat(70)}\n`);
}

async function messageCount(room: Mailroom): Promise<number> {
  return (await room.app.db.selectFrom("messages").select("id").execute()).length;
}

describe("a mail that holds up or ends the thread that reads it", () => {
  test.each(["HOLD THE THREAD", "END THE THREAD"])(
    "is put off and named in the log, and the mails beside it are taken: %s",
    async (words) => {
      await using room = await mailroom();
      await using examiner = heldExaminer();
      Object.assign(room.app, { examiner });
      const warnings = logged(room, "warn");
      const many = (greeting: string) =>
        Array.from({ length: 6 }, (_one, at) => room.send({ text: long(`${greeting} ${at}`) }));
      const before = many("Hello");
      const hostile = room.send({ text: long(words) });
      const replies = await Promise.all([...before, ...many("Bye")]);
      expect(replies.filter((reply) => !reply.startsWith("250"))).toEqual([]);
      expect(await hostile).toStartWith("451 4.3.0 The mail could not be read in the time that one may take");
      expect(warnings.filter((line) => line.includes("a mail could not be read in time"))).toHaveLength(1);
      expect(room.app.metrics.counted("mailwright_mails_refused_total")).toMatchObject([
        { labels: { reason: "unreadable" }, value: 1 },
      ]);
      expect(await room.send({ text: "And one more." })).toStartWith("250");
      expect(await messageCount(room)).toBe(13);
    },
  );
});

test("a mail that holds its thread is put off within the limits that the server has", async () => {
  await using room = await mailroom();
  await using examiner = createThreadsBySize<MailToExamine, Examination>(HELD);
  Object.assign(room.app, { examiner });
  // A thread that is being loaded may stay silent for longer.
  expect(await room.send({ text: long("Hello") })).toStartWith("250");
  expect(await room.send({ text: long("HOLD THE THREAD") })).toStartWith("451 4.3.0");
});

test("a flood of such mails waits behind itself: mails from elsewhere are taken meanwhile", async () => {
  await using room = await mailroom();
  await using examiner = heldExaminer();
  Object.assign(room.app, { examiner });
  const replies: string[] = [];
  const send = async (local_address: string, words: string) => {
    const raw = rawMail({ from: "ada@example.com", to: room.inbox.address, text: long(words), ...freshId() });
    const mail = { from: "ada@example.com", to: room.inbox.address, raw };
    const reply = await deliver({ ...room.door, local_address }, mail).catch(String);
    replies.push(`${local_address} ${reply.includes("451 4.3.0") ? "put off" : reply.slice(0, 3)}`);
  };
  const flood = Array.from({ length: 3 }, (_, at) => send("127.0.0.3", `HOLD THE THREAD ${at}`));
  await Promise.all(Array.from({ length: 4 }, (_, at) => send("127.0.0.4", `Hello ${at}`)));
  await send("127.0.0.4", "And one more.");
  expect(replies).toEqual(Array.from({ length: 5 }, () => "127.0.0.4 250"));
  await Promise.all(flood);
  expect(replies.slice(5)).toEqual(Array.from({ length: 3 }, () => "127.0.0.3 put off"));
});

test("a large mail that holds its thread has no other mail begun anew", async () => {
  await using room = await mailroom();
  await using examiner = heldExaminer({ ask_ms: 250 });
  let packed = 0;
  const run: typeof examiner.run = (from, pack) =>
    examiner.run(from, () => {
      packed += 1;
      return pack();
    });
  Object.assign(room.app, { examiner: { ...examiner, run } });
  const large = room.send({ text: `${long("HOLD THE THREAD")}${`${"x".repeat(70)}\n`.repeat(3_000)}` });
  const replies = await Promise.all(
    Array.from({ length: 4 }, (_, at) => room.send({ text: long(`Hi ${at}`) })),
  );
  expect(replies.filter((reply) => !reply.startsWith("250"))).toEqual([]);
  expect(await large).toStartWith("451 4.3.0");
  // The large one twice: it was tried again alone.
  expect(packed).toBe(4 + 2);
});

test("reports to the postmaster are taken however hard the words in them are to show, and so is mail beside them", async () => {
  await using room = await signedRoom();
  const sheet = Array.from({ length: 5_000 }, (_one, nth) => `.a{x${nth}:1}`).join("");
  const html = `<style>${sheet}</style>${"<b class=a>".repeat(25_000)}`;
  // Two networks, as the postmaster takes few mails of one.
  const report = (_none: unknown, nth: number) => {
    const mail = { from: "eve@example.net", to: "postmaster@mw.test" };
    const raw = rawMail({ ...mail, subject: "Report domain: mw.test", html, ...freshId() });
    return deliver({ ...room.door, local_address: `127.0.${nth % 2}.3` }, { ...mail, raw });
  };
  const replies = Promise.all(Array.from({ length: 8 }, report));
  expect(await room.again(await room.signed({ text: "Are you there?" }))).toStartWith("250");
  expect((await replies).filter((reply) => !reply.startsWith("250"))).toEqual([]);
});

test("a bug of the reading leaves the mail with its sender, and the log has its words", async () => {
  await using room = await mailroom();
  await using examiner = heldExaminer();
  Object.assign(room.app, { examiner });
  const errors = logged(room, "error");
  expect(await room.send({ text: long("THROW") })).toStartWith("451 4.3.0 The mail could not be read;");
  expect(errors).toHaveLength(1);
  expect(await messageCount(room)).toBe(0);
});

/** What the thread of this server has read so far. */
function examinedBy(room: Mailroom): Examination[] {
  const examined: Examination[] = [];
  const { examiner } = room.app;
  Object.assign(room.app, {
    examiner: {
      ...examiner,
      run: async (...work: Parameters<typeof examiner.run>) => {
        const outcome = await examiner.run(...work);
        if (outcome.ok) examined.push(outcome.output);
        return outcome;
      },
    },
  });
  return examined;
}

test("what is read of a mail is read on the thread: the server itself has only what came of it", async () => {
  await using room = await mailroom({ config: { smtp: { trusted_networks: [] } } });
  const examined = examinedBy(room);
  await room.send({ subject: "Milk", text: "Buy it." });
  expect(examined).toMatchObject([
    { fault: null, subject: "Milk", author: { address: "ada@example.com" }, marks: { hard: null } },
  ]);
});

test("a short mail from a network that is believed asks no thread; one with a long body or header or to a role does", async () => {
  await using room = await mailroom();
  const examined = examinedBy(room);
  const padding = Object.fromEntries(
    Array.from({ length: 120 }, (_one, at) => [`X-Pad-${at}`, "x".repeat(70)]),
  );
  expect(await room.send({ subject: "Short", text: "Buy milk." })).toStartWith("250");
  expect(examined).toEqual([]);
  expect(await room.send({ subject: "Long", text: long("Buy milk.") })).toStartWith("250");
  expect(await room.send({ subject: "Many fields", text: "Buy milk.", headers: padding })).toStartWith("250");
  expect(await room.send({ subject: "Report", text: "Read it.", rcpt: "postmaster@mw.test" })).toStartWith(
    "250",
  );
  expect(examined).toMatchObject([{ subject: "Long" }, { subject: "Many fields" }, { subject: "Report" }]);
  expect([...(examined[0]?.author?.meant.keys() ?? [])]).toEqual([room.inbox.address]);
});

describe("large mails of a domain whose DNS does not answer", () => {
  const FRONT = "127.0.0.3";
  const ELSEWHERE = "127.0.0.4";
  const LARGE = `${"x".repeat(70)}\n`.repeat(5_000);

  /** A room behind a relay, and a way to send it large mails, of which the replies are noted in their order. */
  async function behindRelay() {
    await using stack = new AsyncDisposableStack();
    const zone = { ...signingZone("good.example"), ...signingZone("sub.good.example", null) };
    const dns = stack.use(await startDnsServer(zone));
    for (const name of ["evil.example", "_dmarc.evil.example", "s._domainkey.evil.example"])
      dns.fault(name, "drop");
    const smtp = { trusted_networks: [], trusted_relays: [`${FRONT}=mx.front.example`] };
    const config = { smtp, dns: { servers: [dns.address] } };
    const room = stack.use(await mailroom({ config, inbox: READS_ANYBODY }));
    const order: string[] = [];
    const send = async (local_address: string, domain: string, { text = "", signer = domain } = {}) => {
      const from = `ann@${domain}`;
      const date = new Date(room.clock.now()).toUTCString().replace("GMT", "+0000");
      const headers = { ...freshId().headers, Date: date };
      const raw = rawMail({ from, to: room.inbox.address, text: `${text}\n${LARGE}`, headers });
      const mail = { from, to: room.inbox.address, raw: await signedBy(signer, raw) };
      const reply = await deliver({ ...room.door, local_address }, mail).catch(String);
      order.push(`${local_address} ${domain} ${/\b\d{3} \d\.\d\.\d/.exec(reply)?.[0] ?? reply}`);
    };
    const built = stack.move();
    return { ...room, dns, order, send, [Symbol.asyncDispose]: () => built.disposeAsync() };
  }

  test("keep no thread while they wait: others are answered before them, also from the same network", async () => {
    await using room = await behindRelay();
    const flood = (from: string) => Array.from({ length: 4 }, () => room.send(from, "evil.example"));
    const evil = [...flood(FRONT), ...flood(ELSEWHERE)];
    await untilAsked(room.dns, 1);
    await room.send(FRONT, "good.example");
    await room.send(ELSEWHERE, "good.example");
    expect(room.order).toEqual([`${FRONT} good.example 250 2.6.0`, `${ELSEWHERE} good.example 250 2.6.0`]);
    await Promise.all(evil);
    expect(room.order.filter((line) => line.endsWith("evil.example 451 4.7.0"))).toHaveLength(8);
  });

  test("are judged as others are, and nothing is asked twice for one", async () => {
    await using room = await behindRelay();
    await room.send(ELSEWHERE, "good.example", { signer: "sub.good.example" });
    expect(room.order).toEqual([`${ELSEWHERE} good.example 250 2.6.0`]);
    expect(JSON.parse((await room.newest()).auth ?? "")).toMatchObject({
      dkim: "pass",
      dmarc: "pass",
      aligned: true,
    });
    const asked = room.dns.queries.map(({ name, type }) => `${type} ${name}`);
    expect(asked).toContain("TXT s._domainkey.sub.good.example");
    expect(asked.length).toBe(new Set(asked).size);
  });

  test("that hold their threads keep none from other domains behind the same relay", async () => {
    await using room = await behindRelay();
    await using examiner = heldExaminer({ ask_ms: 600 });
    Object.assign(room.app, { examiner });
    const held = Array.from({ length: 3 }, () =>
      room.send(FRONT, "held.example", { text: "HOLD THE THREAD", signer: "good.example" }),
    );
    await room.send(FRONT, "good.example");
    expect(room.order).toEqual([`${FRONT} good.example 250 2.6.0`]);
    await Promise.all(held);
  });
});

/** Resolves once so many questions have come. */
async function untilAsked({ queries }: TestDnsServer, count: number): Promise<void> {
  await until(() => queries.length >= count);
}
