import { afterAll, describe, expect, test } from "bun:test";
import { createMailParser } from "../../src/mail/reading/parse.ts";
import { withShortRuns } from "../../src/mail/reading/short-runs.ts";

const HEAD = "From: a@x.org\r\nContent-Transfer-Encoding: quoted-printable\r\n";
const parser = createMailParser();
afterAll(() => parser[Symbol.asyncDispose]());

function cut(text: string): string {
  return Buffer.from(withShortRuns(Buffer.from(text))).toString();
}

describe("long runs of blanks in the body of a mail", () => {
  test("do not keep it from being read, in quoted-printable", async () => {
    const outcome = await parser.parse(
      Buffer.from(`${HEAD}\r\nHello=20you${" ".repeat(5_000_000)}there\r\n`),
    );
    expect(outcome).toMatchObject({ ok: true, mail: { new_text: "Hello you there" } });
  });

  test.each([
    ["one in the middle", `a${" ".repeat(1_001)}b`, "a b"],
    ["one of 1,000", `a${" ".repeat(1_000)}b`, `a${" ".repeat(1_000)}b`],
    ["one of blanks and tabs", `a${" \t".repeat(2_000)}b`, "a b"],
    ["one at the end", `a${" ".repeat(5_000)}`, "a "],
    ["one at the beginning", `${" ".repeat(5_000)}a`, " a"],
    ["several", `a${" ".repeat(2_000)}b${" ".repeat(999)}c${" ".repeat(9_999)}d`, `a b${" ".repeat(999)}c d`],
    ["lines of blanks", `${" ".repeat(900)}\r\n`.repeat(5), `${" ".repeat(900)}\r\n`.repeat(5)],
  ])("are cut to one: %s", (_what, body, short) => {
    expect(cut(`${HEAD}\r\n${body}`)).toBe(`${HEAD}\r\n${short}`);
    expect(cut(`${HEAD.replaceAll("\r", "")}\n${body}`)).toBe(`${HEAD.replaceAll("\r", "")}\n${short}`);
  });

  test("are left in the header, and a mail without any is the same", () => {
    const header = `${HEAD}X-A: ${" ".repeat(3_000)}a\r\n`;
    expect(cut(`${header}\r\nHello`)).toBe(`${header}\r\nHello`);
    expect(cut(header)).toBe(header);
    const raw = Buffer.from(`${HEAD}\r\nHello`);
    expect(withShortRuns(raw)).toBe(raw);
  });
});
