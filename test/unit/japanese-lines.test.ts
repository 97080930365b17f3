import { expect, test } from "bun:test";
import { decodeCharset } from "../../src/mail/reading/charsets.ts";

const JIS = "iso-2022-jp";
const decoded = (text: string) => decodeCharset(Buffer.from(text, "latin1"), JIS);

test("each line begins in ASCII, whatever set the one above it ends in", () => {
  expect(decoded("Eve \x1b$B<eve> wrote:\r\n> \x1b(BORDER\r\n> more")).toMatch(/\r?\n> ORDER\r\n> more$/);
  expect(decoded("\x1b$B%F%9%H\x1b(B\r\n\x1b$B%F%9%H\x1b(B\n")).toBe("テスト\r\nテスト\n");
});

test("no bytes make a line of their own", () => {
  expect(decoded("> hi \x1b(J\xc0\x8a\xc0\x8aORDER")).not.toContain("\n");
  expect(decoded("a\n\nb\r\n")).toBe("a\n\nb\r\n");
  expect(decoded("")).toBe("");
});
