import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { readProxyHeader } from "../../src/smtp/proxy-header.ts";
import { rawClient, upToData } from "../interop/raw-client.ts";
import { mailOf, OWNER, smtpDoor } from "../interop/smtp-door.ts";
import { testApp } from "../support/app.ts";
import { startDnsServer } from "../support/dns-server.ts";
import { mailroom } from "../support/mailroom.ts";
import { rawMail } from "../support/mails.ts";
import { startClock } from "../support/own-time.ts";

const PROXIES = { proxy_protocol: ["127.0.0.0/8"], trusted_networks: [] };
const SIGNATURE = "\r\n\r\n\0\r\nQUIT\n";

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

/** A header of version 2 whose length is that of its rest. */
function binary(command: number, family: number, rest: Buffer): Buffer {
  const head = Buffer.from([command, family, rest.length >> 8, rest.length & 0xff]);
  return Buffer.concat([bytes(SIGNATURE), head, rest]);
}

const V4 = Buffer.from([192, 0, 2, 10, 10, 0, 0, 1, 0xdc, 0x04, 0, 25]);
const V6 = Buffer.concat([
  Buffer.from("20010db8000000000000000000000007", "hex"),
  Buffer.alloc(16, 1),
  Buffer.from([0xdc, 0x04, 0, 25]),
]);
const V4_IN_V6 = Buffer.concat([
  Buffer.from("00000000000000000000ffffc000020a", "hex"),
  Buffer.alloc(16, 1),
  Buffer.from([0xdc, 0x04, 0, 25]),
]);
const TLV = Buffer.from([0x04, 0, 3, 1, 2, 3]);

describe("a header of the PROXY protocol", () => {
  const whole: [string, Buffer, object][] = [
    ["TCP4", bytes("PROXY TCP4 192.0.2.10 10.0.0.1 56324 25\r\n"), { address: "192.0.2.10", port: 56_324 }],
    ["TCP6", bytes("PROXY TCP6 2001:db8::7 ::1 1 65535\r\n"), { address: "2001:db8::7", port: 1 }],
    ["UNKNOWN", bytes("PROXY UNKNOWN\r\n"), { kind: "proxy" }],
    ["UNKNOWN with more", bytes("PROXY UNKNOWN ff:ff nonsense 1 2 3\r\n"), { kind: "proxy" }],
    ["IPv4 in binary", binary(0x21, 0x11, V4), { address: "192.0.2.10", port: 56_324 }],
    ["IPv6 in binary", binary(0x21, 0x21, V6), { address: "2001:db8::7", port: 56_324 }],
    // A proxy whose one socket takes both kinds of clients writes these.
    ["IPv4 within IPv6", bytes("PROXY TCP6 ::ffff:c000:20a ::1 1 25\r\n"), { address: "192.0.2.10" }],
    ["IPv4 within IPv6 in binary", binary(0x21, 0x21, V4_IN_V6), { address: "192.0.2.10" }],
    ["IPv4 with more about it", binary(0x21, 0x11, Buffer.concat([V4, TLV])), { address: "192.0.2.10" }],
    ["LOCAL", binary(0x20, 0x00, Buffer.alloc(0)), { kind: "proxy" }],
    ["LOCAL with addresses", binary(0x20, 0x11, V4), { kind: "proxy" }],
    ["a family that is not said", binary(0x21, 0x00, TLV), { kind: "proxy" }],
    ["a socket of the same machine", binary(0x21, 0x31, Buffer.alloc(216)), { kind: "proxy" }],
  ];
  test.each(whole)("%s is read, however it is cut, and to the byte", (_, header, expected) => {
    const reading = readProxyHeader(Buffer.concat([header, bytes("EHLO x\r\n")]));
    expect(reading).toMatchObject({ state: "whole", bytes: header.length, header: expected });
    for (let end = 0; end < header.length; end++)
      expect(readProxyHeader(header.subarray(0, end))).toEqual({ state: "partial" });
  });

  const wrong: [string, Buffer][] = [
    ["a command of SMTP", bytes("EHLO client.test\r\n")],
    ["a line in small letters", bytes("proxy TCP4 192.0.2.10 10.0.0.1 1 25\r\n")],
    ["an unknown family", bytes("PROXY UDP4 192.0.2.10 10.0.0.1 1 25\r\n")],
    ["an address of the other family", bytes("PROXY TCP4 2001:db8::7 ::1 1 25\r\n")],
    ["half an address", bytes("PROXY TCP4 192.0.2 10.0.0.1 1 25\r\n")],
    ["an address with a zone", bytes("PROXY TCP6 fe80::1%eth0 ::1 1 25\r\n")],
    ["a name in place of an address", bytes("PROXY TCP4 mx.example.com 10.0.0.1 1 25\r\n")],
    ["a port too large", bytes("PROXY TCP4 192.0.2.10 10.0.0.1 65536 25\r\n")],
    ["a port with a zero in front", bytes("PROXY TCP4 192.0.2.10 10.0.0.1 01 25\r\n")],
    ["two blanks", bytes("PROXY TCP4  192.0.2.10 10.0.0.1 1 25\r\n")],
    ["a field too many", bytes("PROXY TCP4 192.0.2.10 10.0.0.1 1 25 x\r\n")],
    ["a field too few", bytes("PROXY TCP4 192.0.2.10 10.0.0.1 1\r\n")],
    ["a line that does not end", bytes(`PROXY UNKNOWN ${"x".repeat(93)}`)],
    ["a bare line feed", bytes(`PROXY TCP4 192.0.2.10 10.0.0.1 1 25\n${"x".repeat(100)}`)],
    ["another signature", Buffer.concat([bytes("\r\n\r\n\0\r\nQUIX\n"), Buffer.alloc(4)])],
    ["version 1 in binary", binary(0x11, 0x11, V4)],
    ["an unknown command", binary(0x22, 0x11, V4)],
    ["datagrams", binary(0x21, 0x12, V4)],
    ["too few bytes for the addresses", binary(0x21, 0x21, V4)],
    ["more than anybody has to say", binary(0x21, 0x11, Buffer.alloc(8_193))],
  ];
  test.each(wrong)("is not %s", (_, input) => {
    expect(readProxyHeader(input)).toEqual({ state: "wrong" });
  });

  test("is never found beyond the bytes that came, whatever they are", () => {
    const start = fc.constantFrom("", "PROXY ", "PROXY TCP4 ", SIGNATURE, `${SIGNATURE}\x21\x11`);
    const property = fc.property(start, fc.uint8Array({ maxLength: 300 }), (text, rest) => {
      const input = Buffer.concat([bytes(text), rest]);
      const reading = readProxyHeader(input);
      if (reading.state === "whole") expect(reading.bytes).toBeLessThanOrEqual(input.length);
      else if (reading.state === "partial") expect(input.length).toBeLessThan(16 + 8_192);
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});

describe("a peer of smtp.proxy_protocol", () => {
  const V1 = bytes("PROXY TCP4 192.0.2.10 10.0.0.1 56324 25\r\n");

  test("speaks for its client: SPF, counts and limits are of the address it names", async () => {
    await using dns = await startDnsServer({
      "example.com": { TXT: ["v=spf1 ip4:192.0.2.10 -all"] },
      "_dmarc.example.com": { TXT: ["v=DMARC1; p=reject"] },
    });
    await using room = await mailroom({
      config: {
        dns: { servers: [dns.address] },
        smtp: { ...PROXIES, max_connections_per_address: 1 },
      },
    });
    const raw = rawMail({ from: "ada@example.com", to: room.inbox.address });
    const send = async (header: Buffer) => {
      using client = await rawClient(room.door, false);
      client.write(header);
      await client.reply();
      await upToData(client, "ada@example.com", [room.inbox.address]);
      client.write(Buffer.concat([raw, bytes("\r\n.\r\n")]));
      return await client.reply();
    };
    expect(await send(V1)).toStartWith("250");
    expect(JSON.parse((await room.newest()).auth ?? "")).toMatchObject({ spf: "pass", dmarc: "pass" });
    expect(await send(binary(0x21, 0x21, V6))).toStartWith("550 5.7.26");
    // Each client has one connection of its own; a second one of the same address is too many.
    using first = await rawClient(room.door, false);
    first.write(V1);
    expect(await first.reply()).toStartWith("220");
    using second = await rawClient(room.door, false);
    second.write(V1);
    expect(await second.reply()).toStartWith("421 Too many connections from 192.0.2.10");
    using other = await rawClient(room.door, false);
    other.write(binary(0x21, 0x21, V6));
    expect(await other.reply()).toStartWith("220");
  });

  test("may send its header byte by byte, and its client's first words with it", async () => {
    await using door = await smtpDoor({ smtp: { ...PROXIES, trusted_networks: ["192.0.2.0/24"] } });
    for (const header of [V1, binary(0x21, 0x11, Buffer.concat([V4, TLV]))]) {
      using client = await rawClient(door.address, false);
      await client.writePieces(Array.from(header, (byte) => Uint8Array.of(byte)));
      expect(await client.reply()).toStartWith("220");
      using eager = await rawClient(door.address, false);
      eager.write(Buffer.concat([header, bytes("EHLO client.test\r\n")]));
      expect(await eager.reply()).toStartWith("220");
      expect(await eager.reply()).toStartWith("250");
      await client.say("EHLO client.test");
      expect(await client.say(`MAIL FROM:<${OWNER}>`)).toStartWith("250");
      expect(await client.say(`RCPT TO:<${door.inbox}>`)).toStartWith("250");
      expect(await client.say("DATA")).toStartWith("354");
      client.write(`${mailOf("Through the proxy")}.\r\n`);
      expect(await client.reply()).toStartWith("250");
    }
    expect(await door.stored()).toHaveLength(2);
  });

  test("is closed without a word when it does not begin with a header", async () => {
    await using door = await smtpDoor({ smtp: PROXIES });
    for (const start of ["EHLO client.test\r\n", "PROXY TCP4 nonsense\r\n", "\r\n\r\nGET / HTTP/1.1\r\n"]) {
      using client = await rawClient(door.address, false);
      client.write(start);
      expect(await client.reply()).toBe("");
      expect(client.replies).toEqual([]);
    }
    using leaver = await rawClient(door.address, false);
    leaver.write("PROXY ");
    leaver.abort();
    using client = await rawClient(door.address, false);
    client.write("PROXY UNKNOWN\r\n");
    expect(await client.reply()).toStartWith("220");
  });

  test("holds up no stop while its header has not come", async () => {
    const door = await smtpDoor({ smtp: PROXIES });
    using client = await rawClient(door.address, false);
    client.write("PROXY ");
    // The door has seen the connection once another one has been greeted.
    using other = await rawClient(door.address, false);
    other.write("PROXY UNKNOWN\r\n");
    await other.reply();
    await other.say("QUIT");
    using clock = startClock();
    await door[Symbol.asyncDispose]();
    expect(clock.ms()).toBeLessThan(4_000);
    expect(await client.reply()).toBe("");
  });

  test("may go on with STARTTLS, and its client is still who it was", async () => {
    await using door = await smtpDoor({ smtp: { ...PROXIES, trusted_networks: ["192.0.2.10"] } });
    using client = await rawClient(door.address, false);
    client.write(V1);
    await client.reply();
    await client.say("EHLO client.test");
    expect(await client.say("STARTTLS")).toStartWith("220");
    const { connect } = await import("node:tls");
    const { promise, resolve } = Promise.withResolvers<void>();
    const secure = connect({ socket: client.socket, rejectUnauthorized: false }, resolve);
    await promise;
    let heard = "";
    secure.on("data", (chunk: Buffer) => (heard += chunk.toString()));
    const say = async (line: string, code: string) => {
      heard = "";
      secure.write(`${line}\r\n`);
      while (!new RegExp(`^${code} .*\r\n$`, "m").test(heard))
        await new Promise((next) => setImmediate(next));
    };
    await say("EHLO client.test", "250");
    await say(`MAIL FROM:<${OWNER}>`, "250");
    await say(`RCPT TO:<${door.inbox}>`, "250");
    await say("DATA", "354");
    await say(`${mailOf("Encrypted behind the proxy")}.`, "250");
    secure.destroy();
    expect(await door.stored()).toHaveLength(1);
  });
});

test("who speaks before the greeting is refused behind a proxy too", async () => {
  await using t = await testApp({ smtp: { ...PROXIES, early_talker_ms: 200 } });
  using client = await rawClient(await t.smtp(), false);
  client.write("PROXY TCP4 192.0.2.10 10.0.0.1 56324 25\r\nEHLO too.early\r\n");
  expect(await client.reply()).toStartWith("421");
});

test("a header of anybody else is a command that nobody knows, and changes nothing", async () => {
  await using door = await smtpDoor({
    smtp: { proxy_protocol: ["198.51.100.0/24"], trusted_networks: ["192.0.2.10"] },
  });
  using client = await rawClient(door.address);
  expect(await client.say("PROXY TCP4 192.0.2.10 10.0.0.1 56324 25")).toStartWith("500");
  await upToData(client, OWNER, [door.inbox]);
  client.write(`${mailOf("Forged")}.\r\n`);
  expect(await client.reply()).toStartWith("550");
  using binary2 = await rawClient(door.address);
  binary2.write(Buffer.concat([binary(0x21, 0x11, V4), bytes("\r\n")]));
  expect(await binary2.reply()).toMatch(/^(?:500|421)/);
});
