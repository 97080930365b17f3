import { expect, test } from "bun:test";
import { snippetOf } from "../../src/resources/conversations/snippet.ts";
import { ownMs } from "../support/own-time.ts";

test.each([
  ["# Title\n\nIt is **fine**, says `x.ts`.", "Title It is fine, says x.ts."],
  ["- one\n- two\n1. three\n2) four", "one two three four"],
  ["> quoted\n>\n> more", "quoted more"],
  ["```ts\nlet x = 1;\n```\nDone", "let x = 1; Done"],
  ["See [the page](https://example.com/a_b) and ![a picture](x.png)", "See the page and a picture"],
  ["*so* and _so_ and __so__, ***so***", "so and so and so, so"],
  ["2 * 3 * 4, snake_case_name, a_b", "2 * 3 * 4, snake_case_name, a_b"],
  ["  \t spaces \r\n and\u00a0lines\n\n", "spaces and lines"],
  ["hid\u200bden \u202eover", "hidden over"],
  ["Bought:\n\n| Item | Price |\n|:-----|------:|\n| Milk | **2** |\n", "Bought: Item, Price Milk, 2"],
  ["Above\n\n---\n\nBelow -- and a | b", "Above Below -- and a | b"],
  ["", ""],
])("of %j the snippet is %j", (reply, snippet) => {
  expect(snippetOf(reply)).toBe(snippet);
});

test("a snippet has 200 characters at most and ends with a whole one", () => {
  expect(snippetOf("x".repeat(10_000))).toBe("x".repeat(200));
  const emoji = snippetOf(`${"x".repeat(199)}😀 and more`);
  expect(emoji).toBe("x".repeat(199));
  expect(snippetOf(`${"x".repeat(198)}😀 and more`)).toBe(`${"x".repeat(198)}😀`);
});

test("a reply that was made to be slow to read is not", () => {
  const started = ownMs();
  for (const part of ["[", "[a](", "|", " |", "*_", "```\n", "> ", "_*x"]) snippetOf(part.repeat(100_000));
  expect(ownMs() - started).toBeLessThan(500);
});
