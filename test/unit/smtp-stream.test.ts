import { expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { SMTPStream } from "smtp-server/lib/smtp-stream.js";
import { dotStuffed } from "../interop/raw-client.ts";

/** What the parser of the SMTP door makes of a mail, and the command behind it. */
async function read(pieces: Iterable<Buffer>): Promise<{ mail: string; command: string }> {
  const stream = new SMTPStream();
  const command = Promise.withResolvers<string>();
  stream.oncommand = (line: Buffer, callback?: () => void) => {
    command.resolve(line.toString("latin1"));
    callback?.();
  };
  const data = stream.startDataMode();
  const mail: Buffer[] = [];
  data.on("data", (chunk: Buffer) => mail.push(chunk));
  data.on("end", () => stream.continue());
  for (const piece of pieces) await new Promise((resolve) => stream.write(piece, resolve));
  const line = await command.promise;
  return { mail: Buffer.concat(mail).toString("latin1"), command: line };
}

/** RFC 5321 §4.5.2 the slow way: the lines up to the one that is a dot. */
function unstuffed(wire: string): string {
  const lines = wire.split("\r\n");
  const mail = lines.slice(0, lines.indexOf("."));
  return mail.map((line) => `${line.startsWith("..") ? line.slice(1) : line}\r\n`).join("");
}

test("dots at all places, cut anywhere, are read as by a reader that goes line by line", async () => {
  const token = fc.constantFrom(
    ".",
    "..",
    "\r",
    "\n",
    "\r\n",
    "\r\n.",
    "\r\n..",
    ".x",
    "\n.",
    "\r.",
    "\0",
    "x",
  );
  const body = fc.array(token, { maxLength: 40 }).map((tokens) => tokens.join(""));
  await fc.assert(
    fc.asyncProperty(body, fc.boolean(), fc.array(fc.nat(120)), async (text, stuffed, cuts) => {
      // Unstuffed, the mail may end early; a client may also leave a single dot in front of other text.
      const wire = `${stuffed ? dotStuffed(text) : text}\r\n.\r\nNOOP\r\n`;
      const at = [0, ...cuts.filter((cut) => cut < wire.length).sort((a, b) => a - b), wire.length];
      const pieces = at.slice(1).map((end, index) => Buffer.from(wire.slice(at[index], end), "latin1"));
      const found = await read(pieces.filter(({ length }) => length > 0));
      expect(found.mail).toBe(unstuffed(wire));
      if (stuffed) expect(found).toEqual({ mail: `${text}\r\n`, command: "NOOP" });
    }),
    { numRuns: 3_000 },
  );
});

test.each(["..\r\n", ".x\r\n", "\r\n"])(
  "a chunk full of %j takes no more objects and calls than one of ordinary lines",
  async (line) => {
    const work = async (unit: string) => {
      const chunk = Buffer.from(unit.repeat(16_384).slice(0, 65_536));
      const counted = [
        spyOn(Buffer.prototype, "subarray"),
        spyOn(Buffer.prototype, "indexOf"),
        spyOn(Buffer, "compare"),
        spyOn(Buffer, "concat"),
        spyOn(Buffer, "allocUnsafe"),
      ];
      await read([chunk, Buffer.from("\r\n.\r\nNOOP\r\n")]);
      const calls = counted.reduce((sum, { mock }) => sum + mock.calls.length, 0);
      for (const spy of counted) spy.mockRestore();
      return calls;
    };
    const ordinary = await work(`${"y".repeat(70)}\r\n`);
    expect(ordinary).toBeGreaterThan(2);
    expect(await work(line)).toBeLessThan(ordinary + 10);
  },
);
