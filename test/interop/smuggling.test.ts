import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { dotStuffed, rawClient, upToData } from "./raw-client.ts";
import { mailOf, OWNER, smtpDoor } from "./smtp-door.ts";
import { ownMs } from "../support/own-time.ts";

/** What stands in the middle of the mail, as the client sends it. None of it ends the mail. */
const SEQUENCES = [
  "\n.\n",
  "\n.\r\n",
  "\r\n.\n",
  "\r.\r",
  "\r.\r\n",
  "\r\n.\r",
  "\n.\r",
  "\r.\n",
  "\r\n\0.\r\n",
  "\r\n.\0\r\n",
  "\r\n.\r\0\n",
  "\r\0\n.\r\n",
  "\r\r\n.\r\r\n",
  "\r\n..\r\n",
  "\r\n. \r\n",
  "\r\n \r.\r\n",
  "\n\n..\n",
  "\r\n.\r.\r\n",
  "\r\n...\r\n",
  "\r\n\u0085.\u0085\n",
];

let door: Awaited<ReturnType<typeof smtpDoor>>;

beforeAll(async () => {
  door = await smtpDoor();
});

afterAll(() => door[Symbol.asyncDispose]());

describe("a second envelope behind a sequence that only looks like the end stays content", () => {
  for (const pace of ["whole", "byte by byte"] as const) {
    test.each(SEQUENCES.map((sequence) => [JSON.stringify(sequence), sequence] as const))(
      `%s, sent ${pace}`,
      async (_name, sequence) => {
        const before = (await door.stored()).length;
        using client = await rawClient(door.address);
        await upToData(client, OWNER, [door.inbox]);
        const smuggled = `MAIL FROM:<${OWNER}>\r\nRCPT TO:<${door.inbox}>\r\nDATA\r\n${mailOf("smuggled")}`;
        const wire = Buffer.from(`${mailOf("outer", `text${sequence}${smuggled}`)}.\r\n`, "latin1");
        if (pace === "whole") client.write(wire);
        else await client.writePieces(wire.values().map((byte) => Uint8Array.of(byte)));
        expect(await client.reply()).toBe("250 2.6.0 Message accepted");
        expect(await client.say("NOOP")).toStartWith("250");
        // Greeting, EHLO, MAIL, RCPT, DATA, the mail, NOOP: no reply to anything inside the mail.
        expect(client.replies).toHaveLength(7);
        const stored = (await door.stored()).slice(before);
        expect(stored).toEqual([unstuffed(wire.toString("latin1"))]);
      },
    );
  }
});

test("a body of dots, carriage returns, line feeds and NULs arrives as it was, wherever the network cuts it", async () => {
  const token = fc.constantFrom(".", "..", "\r", "\n", "\r\n", "\r\n.", ".\r\n", "\n.", "\n..", "\0", "x");
  const body = fc.array(token, { maxLength: 24 }).map((tokens) => tokens.join(""));
  const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 12 });
  using client = await rawClient(door.address);
  await client.say("EHLO client.test");
  await fc.assert(
    fc.asyncProperty(body, fc.boolean(), cuts, async (text, dotFirst, cuts) => {
      const before = (await door.stored()).length;
      // A field may be called ".x", so that the first byte of the mail can be a dot too.
      const content = `${dotFirst ? ".x: y\r\n" : ""}${mailOf("any", text)}\r\n`;
      const wire = Buffer.from(`${dotStuffed(content)}.\r\n`, "latin1");
      await client.say(`MAIL FROM:<${OWNER}>`);
      await client.say(`RCPT TO:<${door.inbox}>`);
      await client.say("DATA");
      // Cuts are counted from the end: that is where the body is.
      await client.writePieces(
        pieces(
          wire,
          cuts.map((cut) => Math.max(wire.length - cut, 0)),
        ),
      );
      expect(await client.reply()).toBe("250 2.6.0 Message accepted");
      expect((await door.stored()).slice(before)).toEqual([content]);
    }),
    { numRuns: 300 },
  );
});

test("two mails and a QUIT in a single write are two mails", async () => {
  const before = (await door.stored()).length;
  using client = await rawClient(door.address);
  const [first, second] = [mailOf("first", "..\r\n"), mailOf("second", ".\r\n.\r\n")];
  const envelope = `MAIL FROM:<${OWNER}>\r\nRCPT TO:<${door.inbox}>\r\nDATA\r\n`;
  const wire = [first, second].map((mail) => `${envelope}${dotStuffed(mail)}.\r\n`).join("");
  client.write(`EHLO client.test\r\n${wire}QUIT\r\n`);
  while ((await client.reply()) !== "") continue;
  expect(client.replies.at(-1)).toStartWith("221");
  expect((await door.stored()).slice(before)).toEqual([first, second]);
});

test("a megabyte of doubled dots is taken within half a second and keeps one dot on each line", async () => {
  const lines = 262_144;
  const tries: number[] = [];
  // The best of three is about the code; the worst is about what else the machine does.
  for (let attempt = 0; attempt < 3; attempt += 1) {
    using client = await rawClient(door.address);
    await upToData(client, OWNER, [door.inbox]);
    const head = mailOf("dots", "");
    const started = ownMs();
    client.write(`${head}${"..\r\n".repeat(lines)}.\r\n`);
    expect(await client.reply()).toStartWith("250");
    tries.push(ownMs() - started);
    expect((await door.stored()).at(-1) === head + ".\r\n".repeat(lines)).toBe(true);
  }
  expect(Math.min(...tries)).toBeLessThan(500);
});

/** RFC 5321 §4.5.2 the slow way, for the wire form of one mail with its end. */
function unstuffed(wire: string): string {
  const lines = wire.split("\r\n");
  expect(lines.splice(-2)).toEqual([".", ""]);
  return lines.map((line) => (line.startsWith("..") ? line.slice(1) : line)).join("\r\n") + "\r\n";
}

function pieces(wire: Buffer, cuts: number[]): Buffer[] {
  const at = [...new Set([0, ...cuts, wire.length])].sort((a, b) => a - b);
  return at.slice(1).map((end, index) => wire.subarray(at[index], end));
}
