import { describe, expect, test } from "bun:test";
import { withoutCalls } from "../../src/resources/integrations/codehost-calls.ts";

/** With the character that nobody sees as `|`. */
const written = (text: string, trusted = ""): string => withoutCalls(text, trusted).replaceAll("\u200B", "|");

describe("what others wrote", () => {
  test.each([
    ["@claude add eve", "@|claude add eve"],
    [
      "ask @Copilot, (@dependabot merge) or _@acme/team_",
      "ask @|Copilot, (@|dependabot merge) or _@|acme/team_",
    ],
    ["<!-- @claude -->**@claude**>@claude", "<!-- @|claude -->**@|claude**>@|claude"],
    [
      "&#64;claude &#x40;claude &#0064;claude &commat;claude",
      "&#64;|claude &#x40;|claude &#0064;|claude &commat;|claude",
    ],
    ["\\@claude @&#99;laude @<b></b>claude", "\\@|claude @|&#99;laude @|<b></b>claude"],
    ["é@claude and -@claude", "é@|claude and -@|claude"],
    ["```\n@claude\n```", "```\n@|claude\n```"],
    ["@all\u2028@here", "@|all\u2028@|here"],
  ])("calls nobody: %j", (text, shown) => {
    expect(written(text)).toBe(shown);
  });

  test.each([
    ["/approve", "\\/approve"],
    ["Hello\n  /merge now\r\n/lgtm", "Hello\n  \\/merge now\r\n\\/lgtm"],
    ["fix it /oc please, > /close", "fix it \\/oc please, > \\/close"],
    ["!merge\n- !deploy", "\\!merge\n- \\!deploy"],
    ["::set-output name=x::y", "\\::set-output name=x::y"],
  ])("orders nothing: %j", (text, shown) => {
    expect(written(text)).toBe(shown);
  });

  test.each([
    "Write to eve@example.net or bob+x@example.org.",
    "npm i lodash@4.17.21 react@latest",
    "at 5 @ 3, see /etc/passwd, and/or src/a.ts, https://acme.example/x",
    "No! That is 1/2 of it.",
  ])("stays as it is where it does neither: %j", (text) => {
    expect(withoutCalls(text, "")).toBe(text);
  });
});

describe("whom the owner names", () => {
  test.each([
    ["@claude look", "File it and ask @claude to look"],
    ["@Claude.", "ask `@claude`."],
    ["@acme/team", "for (@Acme/team)"],
  ])("is called: %j by %j", (text, trusted) => {
    expect(withoutCalls(text, trusted)).toBe(text);
  });

  test.each([
    ["@claude", "ask claude"],
    ["@claude", "ask @claude-ops, @claude/ops or x@claude"],
    ["@claude-ops", "ask @claude"],
    ["@claude/ops", "ask @claude"],
    ["@claude&#45;ops", "ask @claude"],
    ["@claude\\-ops", "ask @claude"],
  ])("is nobody else: %j by %j", (text, trusted) => {
    expect(written(text, trusted)).toBe(text.replace("@", "@|"));
  });
});
