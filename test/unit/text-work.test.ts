import { expect, test } from "bun:test";
import { charsIn } from "../../src/pipeline/text-work.ts";

test.each<[string, unknown, number]>([
  ["a text", "a".repeat(99), 99],
  ["a short text as far as looking at it costs", "a", 30],
  ["signs that may be markup, or pack something", `["<b>", {}]${"a".repeat(30)}`, 41 + 6 * 40],
  ["a list", ["a".repeat(40), "c"], 30 + 40 + 30],
  ["the names of members", { ["n".repeat(99_000)]: 1 }, 30 + 99_000 + 30],
  ["what is deep inside", { a: [{ bc: "d".repeat(50) }] }, 30 + 30 + 30 + 30 + 30 + 50],
  ["numbers, of which there may be many", [1, -1.5, null, false], 30 + 4 * 30],
  ["bytes", new Uint8Array(7), 7],
])("what decides about a thread counts %s", (_what, value, chars) => {
  expect(charsIn(value)).toBe(chars);
});
