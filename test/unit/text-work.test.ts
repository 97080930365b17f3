import { expect, test } from "bun:test";
import { charsIn } from "../../src/pipeline/text-work.ts";

test.each<[string, unknown, number]>([
  ["a text", "abc", 3],
  ["a list", ["ab", "c"], 3],
  ["the names of members", { ["n".repeat(99_000)]: 1 }, 99_000],
  ["what is deep inside", { a: [{ bc: "def" }] }, 6],
  ["bytes", new Uint8Array(7), 7],
  ["nothing", null, 0],
])("what decides about a thread counts %s", (_what, value, chars) => {
  expect(charsIn(value)).toBe(chars);
});
