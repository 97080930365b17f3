import { expect, test } from "bun:test";
import { quote, errorTextOf } from "../../src/lib/quote.ts";

const KEY = 'sk-very/secret+"credential"-abcd';

test.each([
  ["whole", `The key ${KEY} is wrong`],
  ["in capitals", `The key ${KEY.toUpperCase()} is wrong`],
  ["encoded for a URL", `The key ${encodeURIComponent(KEY)} is wrong`],
  ["encoded with small hex digits", `The key ${encodeURIComponent(KEY).toLowerCase()} is wrong`],
  ["as JSON", `The key ${JSON.stringify(KEY).slice(1, -1)} is wrong`],
  ["its start", `The key ${KEY.slice(0, 12)} is wrong`],
  ["its middle", `The key ${KEY.slice(9, 22)} is wrong`],
  ["its end", `The key ${KEY.slice(-9)} is wrong`],
  ["masked with stars", `The key ${KEY.slice(0, 7)}*****${KEY.slice(-4)} is wrong`],
  ["masked with dots", `The key ${KEY.slice(0, 3)}...${KEY.slice(-4)} is wrong`],
  ["masked with an ellipsis", `The key …${KEY.slice(-4)} is wrong`],
])("a secret is hidden: %s", (_how, text) => {
  expect(quote(text, [KEY])).toBe("The key [key] is wrong");
});

test("every secret is hidden, however often it stands there", () => {
  const text = "one-secret-one two-secret-two one-secret-one";
  expect(quote(text, ["one-secret-one", "two-secret-two"])).toBe("[key] [key] [key]");
});

test("words that are no part of a secret stay, and a secret of a few letters hides nothing", () => {
  expect(quote("Wait... your model *is* not there", [KEY])).toBe("Wait... your model *is* not there");
  expect(quote("abc and abc", ["abc"])).toBe("abc and abc");
  expect(quote("a secret", [""])).toBe("a secret");
});

test("no end of a key is left where a long text is cut", () => {
  for (let pad = 560; pad < 610; pad += 1) {
    const shown = quote(`${" ".repeat(20)}${"y".repeat(pad)}${KEY}`, [KEY]);
    expect(shown.length).toBeLessThanOrEqual(300);
    expect(shown).not.toContain("sk-");
  }
  expect(quote(KEY.repeat(200), [KEY])).not.toContain("sk-very");
});

test("a quotation is one line without control characters", () => {
  expect(quote("a\r\nb\u0000\u202Ec\t d ", [])).toBe("a b c d");
});

test("the sentence of an error is found in every provider's shape", () => {
  expect(errorTextOf('{"error":{"message":"no"}}')).toBe("no");
  expect(errorTextOf('{"error":"no"}')).toBe("no");
  expect(errorTextOf('{"message":"no"}')).toBe("no");
  expect(errorTextOf('{"detail":"no"}')).toBe("no");
  expect(errorTextOf('[{"error":{"message":"no"}}]')).toBe("no");
  expect(errorTextOf("plain")).toBe("plain");
  expect(errorTextOf(" <html>")).toBe("(a web page instead of an answer)");
});
