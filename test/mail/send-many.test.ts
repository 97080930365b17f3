import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { createConnections } from "../../src/mail/sending/connections.ts";
import { at, direct, MAIL } from "../support/direct.ts";
import type { DnsZone } from "../support/dns-server.ts";
import { startSmtpSink } from "../support/smtp-sink.ts";

const ONE: DnsZone = { "there.example": { MX: [[10, "mx1.there.example"]] } };

describe("many mails", () => {
  test("to one domain go over few connections, each of which carries many", async () => {
    await using t = await direct([{}], ONE);
    const outcomes = await Promise.all(Array.from({ length: 1_000 }, () => t.sender.send(MAIL)));
    expect(outcomes.filter(({ status }) => status === "sent")).toHaveLength(1_000);
    const sink = at(t.sinks, 0);
    expect(sink.mails).toHaveLength(1_000);
    expect(sink.peak).toBeLessThanOrEqual(10);
    expect(sink.connections).toBeLessThanOrEqual(20);
  });

  test("to a domain whose server hangs do not hold up those to another", async () => {
    await using t = await direct([{}, {}], {
      "slow.example": { MX: [[10, "mx1.there.example"]] },
      "there.example": { MX: [[10, "mx2.there.example"]] },
    });
    at(t.sinks, 0).fault = "hang";
    const slow = Array.from({ length: 50 }, () => t.sender.send({ ...MAIL, envelope_to: "a@slow.example" }));
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent", mx: "mx2.there.example" });
    expect(at(t.sinks, 0).peak).toBeLessThanOrEqual(10);
    await t.sender[Symbol.asyncDispose]();
    for (const outcome of await Promise.all(slow)) expect(outcome.status).toBe("deferred");
  });

  test("wait for their turn no longer than their time is", async () => {
    await using t = await direct([{}], ONE, { timeouts: { attempt_ms: 200, greeting_ms: 5_000 } });
    at(t.sinks, 0).fault = "hang";
    const outcomes = await Promise.all(Array.from({ length: 11 }, () => t.sender.send(MAIL)));
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 11 }, () => "deferred"));
  });

  test("of different domains share the connections to the server they have in common", async () => {
    await using t = await direct([{}], {
      ...ONE,
      "other.example": { MX: [[10, "mx1.there.example"]] },
    });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    expect(await t.sender.send({ ...MAIL, envelope_to: "bob@other.example" })).toMatchObject({
      status: "sent",
    });
    expect(at(t.sinks, 0).connections).toBe(1);
  });
});

describe("a kept connection", () => {
  test("that the server ends with 421 at the next mail costs that mail nothing", async () => {
    await using t = await direct([{ mails_per_session: 2 }], ONE);
    for (let mail = 0; mail < 5; mail++) expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    expect(at(t.sinks, 0).mails).toHaveLength(5);
    expect(at(t.sinks, 0).connections).toBe(3);
  });

  test("that has been cut meanwhile costs the next mail nothing", async () => {
    await using t = await direct([{}], ONE);
    await t.sender.send(MAIL);
    at(t.sinks, 0).cut();
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    expect(at(t.sinks, 0).connections).toBe(2);
  });

  test("is none that had ended before it was given back", async () => {
    await using sink = await startSmtpSink();
    using connections = createConnections({
      name: "me.example",
      port: sink.port,
      connect_ms: 1_000,
      greeting_ms: 1_000,
    });
    const wish = { plain: true, deadline: Date.now() + 5_000 };
    const server = { host: "mx1.there.example", address: sink.host };
    const lent = await connections.take(server, wish);
    const ended = once(lent.smtp, "end");
    sink.cut();
    await ended;
    connections.giveBack(lent);
    expect(await connections.take(server, wish)).not.toBe(lent);
  });

  test("goes on after nobody's fault only: a refused mail ends it, and the next gets a new one", async () => {
    await using t = await direct(
      [{ reject: (to) => (to.startsWith("no") ? "550 5.1.1 who?" : undefined) }],
      ONE,
    );
    await t.sender.send(MAIL);
    expect(await t.sender.send({ ...MAIL, envelope_to: "no@there.example" })).toMatchObject({
      status: "failed",
    });
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    expect(at(t.sinks, 0).connections).toBe(2);
  });
});

test("a mail whose end was not confirmed is put off with a word that it may come twice", async () => {
  for (const fault of ["drop_in_data", "hang_in_data"] as const) {
    await using t = await direct([{}], ONE);
    at(t.sinks, 0).fault = fault;
    const outcome = await t.sender.send(MAIL);
    expect(outcome.status).toBe("deferred");
    expect(outcome.response).toContain("the mail may come twice");
  }
});

test("a connection that breaks before the mail was given says nothing of twice", async () => {
  await using t = await direct([{}], ONE);
  at(t.sinks, 0).fault = "hang";
  expect((await t.sender.send(MAIL)).response).not.toContain("twice");
});

describe("the addresses of a server", () => {
  test("of IPv6 are tried when those of IPv4 do not answer, and the other way round", async () => {
    await using t = await direct([{}], ONE, { egress_allow: ["127.0.0.0/8", "::1"] });
    t.dns.set("mx1.there.example", "A", ["127.0.0.1"]);
    t.dns.set("mx1.there.example", "AAAA", ["::1"]);
    // Nothing listens on ::1.
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
    await using six = await direct([{ host: "::1" }], ONE, { egress_allow: ["127.0.0.0/8", "::1"] });
    six.dns.set("mx1.there.example", "A", ["127.0.0.9"]);
    six.dns.set("mx1.there.example", "AAAA", ["::1"]);
    expect(await six.sender.send(MAIL)).toMatchObject({ status: "sent" });
  });

  test("are tried in turns of both kinds", async () => {
    await using t = await direct([{ host: "::1" }], ONE, { egress_allow: ["127.0.0.0/8", "::1"] });
    t.dns.set("mx1.there.example", "A", ["127.0.0.6", "127.0.0.7", "127.0.0.8", "127.0.0.9"]);
    t.dns.set("mx1.there.example", "AAAA", ["::1"]);
    expect(await t.sender.send(MAIL)).toMatchObject({ status: "sent" });
  });
});
