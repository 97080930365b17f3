import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { connect as connectTls } from "node:tls";
import { dotStuffed, type RawClient, rawClient, type SmtpAddress, upToData } from "./raw-client.ts";
import { mailOf, OWNER, smtpDoor } from "./smtp-door.ts";
import { startClock } from "../support/own-time.ts";

/** On an idle machine a delivery takes some milliseconds; this bounds it on a busy one. */
const PROMPT_MS = 1_500;
/** Commands whose replies would be more than the buffers of both kernels hold. */
const DEAF_BYTES = 32 * 1_048_576;
const MANY = { max_connections: 2_000, max_connections_per_address: 2_000 };

describe("slow clients", () => {
  test("500 idle connections and 20 that trickle their mail do not hold up another one", async () => {
    await using door = await smtpDoor({ smtp: MANY });
    using crowd = new DisposableStack();
    const idle = await Promise.all(Array.from({ length: 500 }, () => rawClient(door.address)));
    for (const client of idle) crowd.use(client);
    const slow = await Promise.all(Array.from({ length: 20 }, () => rawClient(door.address)));
    for (const client of slow) await upToData(crowd.use(client), OWNER, [door.inbox]);
    const mails = slow.map((_, index) => mailOf(`slow ${index}`));
    const drips = slow.map((client, index) => drip(client, `${mails[index]}.\r\n`));
    for (const subject of ["one", "two", "three"]) {
      using clock = startClock();
      expect(await door.deliver(subject)).toBe("250 2.6.0 Message accepted");
      expect(clock.ms()).toBeLessThan(PROMPT_MS);
    }
    // None of the slow mails is in before its last dot; all are after it.
    expect(await door.stored()).toHaveLength(3);
    for (const finish of drips) finish();
    for (const client of slow) expect(await client.reply()).toStartWith("250");
    expect((await door.stored()).slice(3).sort()).toEqual(mails.sort());
    expect(idle.every((client) => client.replies.length === 1 && !client.socket.destroyed)).toBe(true);
  });

  test("a client that never reads its replies is not read any further, and others are served", async () => {
    await using door = await smtpDoor();
    using deaf = await rawClient(door.address);
    deaf.socket.pause();
    await upToBackpressure(deaf);
    expect(await door.deliver("beside a deaf one")).toStartWith("250");
  });
});

describe("talking out of turn", () => {
  test("a client that speaks before the greeting is sent away, one that waits is greeted", async () => {
    await using door = await smtpDoor({ smtp: { early_talker_ms: 100 } });
    using hasty = await rawClient(door.address, false);
    hasty.write("EHLO client.test\r\n");
    expect(await hasty.reply()).toStartWith("421 ");
    expect(await hasty.reply()).toBe("");
    using patient = await rawClient(door.address, false);
    expect(await patient.reply()).toStartWith("220 ");
  });

  test("what is sent in the clear behind STARTTLS is not heard in the encrypted session", async () => {
    await using door = await smtpDoor();
    using client = await rawClient(door.address);
    await client.say("EHLO client.test");
    client.write(`STARTTLS\r\nEHLO injected.test\r\nMAIL FROM:<${OWNER}>\r\nRCPT TO:<${door.inbox}>\r\n`);
    expect(await client.reply()).toStartWith("220 ");
    client.socket.removeAllListeners("data");
    const secure = connectTls({ socket: client.socket, rejectUnauthorized: false });
    await once(secure, "secureConnect");
    secure.write("NOOP\r\nDATA\r\nQUIT\r\n");
    let heard = "";
    for await (const chunk of secure) heard += String(chunk);
    // The server has forgotten EHLO, and never heard of MAIL and RCPT (RFC 3207 §4.2).
    expect(heard.match(/^\d{3} \S+/gm)).toEqual(["250 2.0.0", "503 5.5.1", "221 2.0.0"]);
  });

  test("ten unknown commands end the session", async () => {
    await using door = await smtpDoor();
    using client = await rawClient(door.address);
    client.write("XYZZY\r\n".repeat(1_000));
    while ((await client.reply()) !== "") continue;
    expect(client.replies.slice(1, 10).every((reply) => reply.startsWith("500 5.5.2 "))).toBe(true);
    expect(client.replies[10]).toStartWith("421 ");
    expect(client.replies).toHaveLength(11);
  });

  test("a command line without an end is cut off", async () => {
    await using door = await smtpDoor();
    using client = await rawClient(door.address);
    client.write("EHLO " + "x".repeat(64 * 1_024));
    expect(await client.reply()).toStartWith("421 ");
    expect(await client.reply()).toBe("");
  });

  test("50,000 pipelined commands do not hold up another client", async () => {
    await using door = await smtpDoor();
    using flood = await rawClient(door.address);
    flood.write("NOOP\r\n".repeat(50_000) + "QUIT\r\n");
    using clock = startClock();
    expect(await door.deliver("beside a flood")).toStartWith("250");
    expect(clock.ms()).toBeLessThan(PROMPT_MS);
    while ((await flood.reply()) !== "") continue;
    expect(flood.replies).toHaveLength(50_002);
  });

  test.each([
    "WIZ x",
    "SHELL id",
    "KILL x",
    "XCLIENT ADDR=192.0.2.1",
    "XFORWARD ADDR=192.0.2.1",
    "AUTH PLAIN",
    "EXPN a",
    "BDAT 3",
    "TURN",
  ])("%s is no command of this server", async (line) => {
    await using door = await smtpDoor();
    using client = await rawClient(door.address);
    await client.say("EHLO client.test");
    expect(await client.say(line)).toStartWith("500 5.5.2 ");
  });
});

describe("a thousand recipients", () => {
  test("the first hundred are taken, the others put off, and the inbox behind them all gets one message", async () => {
    await using door = await smtpDoor();
    using client = await rawClient(door.address);
    await client.say("EHLO client.test");
    const to = Array.from({ length: 1_000 }, (_, index) => door.inbox.replace("@", `+${index}@`));
    client.write(`MAIL FROM:<${OWNER}>\r\n${to.map((one) => `RCPT TO:<${one}>\r\n`).join("")}DATA\r\n`);
    while (!(await client.reply()).startsWith("354")) continue;
    const answers = client.replies.slice(3, 1_003);
    expect(answers.slice(0, 100).every((reply) => reply.startsWith("250 2.1.5 "))).toBe(true);
    expect(answers.slice(100).every((reply) => reply.startsWith("452 4.5.3 "))).toBe(true);
    client.write(`${mailOf("to many")}.\r\n`);
    expect(await client.reply()).toBe("250 2.6.0 Message accepted");
    expect((await door.owner.get("/messages")).body.items).toHaveLength(1);
    expect(await door.stored()).toHaveLength(1);
  });

  test("unknown ones are refused one by one and leave no transaction behind", async () => {
    await using door = await smtpDoor();
    using client = await rawClient(door.address);
    await client.say("EHLO client.test");
    const to = Array.from({ length: 1_000 }, (_, index) => `RCPT TO:<nobody-${index}@mw.test>\r\n`).join("");
    client.write(`MAIL FROM:<${OWNER}>\r\n${to}DATA\r\nQUIT\r\n`);
    while ((await client.reply()) !== "") continue;
    expect(client.replies.slice(3, 1_003).every((reply) => reply.startsWith("550 5.1.1 "))).toBe(true);
    expect(client.replies[1_003]).toStartWith("503 5.5.1 ");
    expect(client.replies[1_004]).toStartWith("221 ");
  });
});

describe("a client that goes away", () => {
  const mail = mailOf("gone", "A line.\r\n".repeat(2_000));
  const STATES: [string, string[], string][] = [
    ["after the greeting", [], ""],
    ["after EHLO", ["EHLO client.test"], ""],
    ["after MAIL", ["EHLO client.test", `MAIL FROM:<${OWNER}>`], ""],
    ["after RCPT", ["EHLO client.test", `MAIL FROM:<${OWNER}>`, "RCPT TO:<INBOX>"], ""],
    ["after DATA", ["EHLO client.test", `MAIL FROM:<${OWNER}>`, "RCPT TO:<INBOX>", "DATA"], ""],
    [
      "in the header",
      ["EHLO client.test", `MAIL FROM:<${OWNER}>`, "RCPT TO:<INBOX>", "DATA"],
      mail.slice(0, 20),
    ],
    [
      "in the body",
      ["EHLO client.test", `MAIL FROM:<${OWNER}>`, "RCPT TO:<INBOX>", "DATA"],
      mail.slice(0, -900),
    ],
    ["before the dot", ["EHLO client.test", `MAIL FROM:<${OWNER}>`, "RCPT TO:<INBOX>", "DATA"], mail],
    ["behind the dot", ["EHLO client.test", `MAIL FROM:<${OWNER}>`, "RCPT TO:<INBOX>", "DATA"], `${mail}.`],
    [
      "within the last line end",
      ["EHLO client.test", `MAIL FROM:<${OWNER}>`, "RCPT TO:<INBOX>", "DATA"],
      `${mail}.\r`,
    ],
  ];
  const WAYS = ["resets the connection", "closes it"] as const;

  test.each(STATES.flatMap((state) => WAYS.map((way) => [state[0], way, state] as const)))(
    "%s and %s leaves nothing in the store and gives its place back",
    async (_state, way, [, lines, bytes]) => {
      await using door = await smtpDoor({ smtp: { trusted_networks: [], max_connections_per_address: 1 } });
      const client = await rawClient(door.address);
      for (const line of lines) await client.say(line.replace("INBOX", door.inbox));
      await client.writePieces(bytes === "" ? [] : [Buffer.from(bytes)]);
      if (way === "resets the connection") client.abort();
      else client.socket.end();
      await placeIsFree(door.address);
      await door.drain();
      expect(await door.stored()).toEqual([]);
      expect((await door.owner.get("/messages")).body.items).toEqual([]);
      client[Symbol.dispose]();
    },
  );

  test("between the last dot and the 250 leaves the whole mail or none, and a second try makes no second message", async () => {
    await using door = await smtpDoor();
    let kept = 0;
    for (let turns = 0; turns < 12; turns += 1) {
      const before = (await door.stored()).length;
      const mail = mailOf(`turn ${turns}`, "A line.\r\n".repeat(500));
      const client = await rawClient(door.address);
      await upToData(client, OWNER, [door.inbox]);
      client.write(`${mail}.\r\n`);
      for (let turn = 0; turn < turns; turn += 1) await nextTurn();
      client.abort();
      using again = await rawClient(door.address);
      await upToData(again, OWNER, [door.inbox]);
      const first = (await door.stored()).length - before;
      again.write(`${dotStuffed(mail)}.\r\n`);
      expect(await again.reply()).toStartWith("250");
      expect((await door.stored()).slice(before)).toEqual([mail]);
      kept += first;
    }
    // Both outcomes happen, or this shows less than it says.
    expect(kept).toBeGreaterThan(0);
    await door.drain();
    const { items } = (await door.owner.get("/messages")).body;
    expect(items.map(({ status }: { status: string }) => status)).toEqual(Array(12).fill("done"));
  });
});

/** Sends the mail byte by byte, twenty a second, until told to send the rest. */
function drip(client: RawClient, mail: string): () => void {
  let sent = 0;
  const timer = setInterval(() => {
    if (sent < mail.length - 10) client.write(mail.slice(sent, ++sent));
  }, 50);
  return () => {
    clearInterval(timer);
    client.write(mail.slice(sent));
  };
}

/** Writes commands until neither side's buffers take any more. */
async function upToBackpressure(client: RawClient): Promise<void> {
  const commands = Buffer.from("NOOP\r\n".repeat(10_000));
  for (let written = 0; written < DEAF_BYTES; written += commands.length) {
    if (client.socket.write(commands)) continue;
    if (await stalls(client)) return;
  }
  throw new Error("the server goes on taking commands from a client that reads nothing");
}

/** Whether nothing more goes out for a while. */
async function stalls({ socket }: RawClient): Promise<boolean> {
  const drained = Promise.withResolvers<false>();
  const onDrain = (): void => drained.resolve(false);
  socket.once("drain", onDrain);
  const result = await Promise.race([drained.promise, Bun.sleep(500).then(() => true as const)]);
  socket.off("drain", onDrain);
  return result;
}

/** The server allows one connection: it greets again once it has noticed that the last one is gone. */
async function placeIsFree(address: SmtpAddress): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt += 1) {
    using client = await rawClient(address, false);
    if ((await client.reply()).startsWith("220")) {
      await client.say("QUIT");
      await client.reply();
      return;
    }
  }
  throw new Error("the server still counts the connection that has gone");
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
