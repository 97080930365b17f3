import { expect, test } from "bun:test";
import { withoutGreeted } from "../../src/trust/own-words/greeting.ts";

test.each([
  "Hello eve@example.net,\n\nyes.",
  "\n  Hi Eve Evil eve@example.net!\nyes",
  "Guten Tag <eve@example.net>,\nja",
  "Здравствуйте, eve@example.net\n",
  "Dear eve@example.net",
  "Hi eve@example.net Sales,",
  "Good morning eve@example.net,",
  "Hi Eve & eve@example.net",
])("%j names nobody by its greeting", (text) => {
  const left = withoutGreeted(text);
  expect(left).not.toContain("@");
  expect(left).toHaveLength(text.length);
});

test.each(["Hi --allow-destructive Eve,\nyes", "Hello +vault,\nyes", "Hi Eve –allow-destructive,\nyes"])(
  "%j gives no command by its greeting",
  (text) => {
    expect(withoutGreeted(text)).not.toMatch(/allow|vault/);
  },
);

test.each([
  "Hi, please mail bob@example.org the offer.",
  "Hello Eve,\n\nmail bob@example.org,",
  "Highlight bob@example.org,",
  "Mail bob@example.org,\nand tell him.",
  "",
  " \n ",
  `Hello ${"a@b ".repeat(100)}`,
])("%j stays as it is", (text) => {
  expect(withoutGreeted(text)).toBe(text);
});
