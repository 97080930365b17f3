import { expect, test } from "bun:test";
import { redactArguments, redactText } from "../../src/routing/redact.ts";

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
])("hides %s by its form", (secret) => {
  expect(redactText(`before ${secret} after`)).toBe("before [hidden] after");
});

test("hides what is called a secret, at any depth, and nothing else", () => {
  const args = {
    title: "The secret of the token",
    api_key: "abc",
    "X-Auth-Token": "abc",
    login: { password: "abc", user: "ada", tokens: ["kept"] },
    count: 3,
  };
  expect(redactArguments(args)).toEqual({
    title: "The secret of the token",
    api_key: "[hidden]",
    "X-Auth-Token": "[hidden]",
    login: { password: "[hidden]", user: "ada", tokens: ["kept"] },
    count: 3,
  });
});

test("keeps arguments within 2 KB, the long texts cut first", () => {
  const shown = redactArguments({ title: "Kept", text: "x".repeat(10_000) });
  expect(shown["title"]).toBe("Kept");
  expect(shown["text"]).toEndWith("… (10000 characters)");
  const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`n${index}`, index]));
  expect(Buffer.byteLength(JSON.stringify(redactArguments(many)))).toBeLessThanOrEqual(2_048);
});
