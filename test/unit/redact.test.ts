import { expect, test } from "bun:test";
import { excerptOf, redactArguments, redactText } from "../../src/trust/shown/redact.ts";
import { ownMs } from "../support/own-time.ts";

test.each([
  `sk-proj-${"a1".repeat(20)}`,
  `ghp_${"a1".repeat(18)}`,
  `github_pat_${"a1".repeat(20)}`,
  `glpat-${"a1".repeat(10)}`,
  `ntn_${"a1".repeat(20)}`,
  `xoxb-${"12-".repeat(8)}`,
  `AKIA${"ABCD".repeat(4)}`,
  `eyJ${"a1".repeat(10)}.${"b2".repeat(10)}.${"c3".repeat(10)}`,
  `Bearer ${"a1".repeat(20)}`,
  `-----BEGIN RSA PRIVATE KEY-----\n${"a1\n".repeat(20)}-----END RSA PRIVATE KEY-----`,
  "Authorization: Basic YWRhOnBhc3M=",
])("hides %s by its form", (secret) => {
  expect(redactText(`before ${secret} after`)).toBe("before [hidden] after");
});

test("hides what is called a secret, at any depth, and nothing else", () => {
  const args = {
    title: "The secret of the token",
    api_key: "abc",
    "X-Auth-Token": "abc",
    login: { password: 1234, user: "ada", tokens: ["abc"], credentials: { user: "ada", value: ["abc"] } },
    count: 3,
    max_tokens: 500,
  };
  expect(redactArguments(args)).toEqual({
    title: "The secret of the token",
    api_key: "[hidden]",
    "X-Auth-Token": "[hidden]",
    login: {
      password: "[hidden]",
      user: "ada",
      tokens: ["[hidden]"],
      credentials: { user: "[hidden]", value: ["[hidden]"] },
    },
    count: 3,
    max_tokens: 500,
  });
});

test("keeps arguments within 2 KB, the long texts cut first", () => {
  const shown = redactArguments({ title: "Kept", text: "x".repeat(10_000) });
  expect(shown["title"]).toBe("Kept");
  expect(shown["text"]).toEndWith("… (10000 characters)");
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`n${index}`, index]));
  expect(Buffer.byteLength(JSON.stringify(redactArguments(many)))).toBeLessThanOrEqual(2_048);
});

test("hides what an address carries", () => {
  const shown = redactText("see https://ada:pass@example.com:8080/x?a=1&api_key=abcdef12&b=2#c, or x@y");
  expect(shown).toBe("see https://ada:[hidden]@example.com:8080/x?a=1&api_key=[hidden]&b=2#c, or x@y");
});

test("an excerpt has at most 1 KB and ends with a whole letter", () => {
  expect(excerptOf("short")).toBe("short");
  for (const letter of ["x", "é", "字", "😀"]) {
    const shown = excerptOf(letter.repeat(1_025));
    expect(Buffer.byteLength(shown)).toBeWithin(1_015, 1_025);
    expect(shown.replaceAll(letter, "")).toBe("…");
  }
  expect(excerptOf(`sk-${"a1".repeat(8_000)} and more`)).toBe("[hidden]…");
});

test.each(["eyJ-", "sk-", "-----BEGIN PRIVATE KEY-----", "https://a:", "?key=", "Bearer ", "xoxb-1"])(
  "a text of nothing but %s takes no time",
  (piece) => {
    const text = piece.repeat(2_000_000 / piece.length);
    const started = ownMs();
    redactArguments({ text });
    excerptOf(text);
    redactText(text.slice(0, 200_000));
    expect(ownMs() - started).toBeLessThan(1_000);
  },
);
