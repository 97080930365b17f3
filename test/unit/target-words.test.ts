import { expect, test } from "bun:test";
import { shortTarget } from "../../src/dashboard/pages/connections/short-target.ts";
import { type Lacking, noteLack, wordsLacking } from "../../src/pipeline/lacking.ts";
import { callName } from "../../src/trust/shown/call-name.ts";

test.each([
  ["codehost-a", "Begin with `@github` to let this call change your code host."],
  ["codehost-b", "Begin with `@gitlab` to let this call change your code host."],
  ["notes", "Begin with `@notes` to let this call change your notes."],
  ["mcp:my-notes", "Begin with `@my-notes` to let this call change your notes."],
  ["mcp:calendar", "Begin with `@calendar` to let this call change your calendar."],
])("of %s people are told by the name that they know", (target, words) => {
  const lacking: Lacking = new Map();
  const lacks = { target: true, destroy: false, place: null };
  noteLack(lacking, target, { ...lacks, beside: null });
  const input = { names: true, may_share: null, headers: null };
  expect(wordsLacking(lacking, { message: { source: "api", subject: null }, input })).toEqual([words]);
  const name = words.split("`")[1];
  expect(callName({ tool: "write", target })).toBe(`write of ${name}`);
  expect(`@${shortTarget(target)}`).toBe(name ?? "");
});
