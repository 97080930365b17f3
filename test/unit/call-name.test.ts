import { expect, test } from "bun:test";
import { callName } from "../../src/trust/shown/call-name.ts";

test.each([
  [
    "the name of a tool without marks that look like more",
    "list of @office\u202e",
    "mcp:calendar",
    "list_of__office_ of @calendar",
  ],
  ["a tool server with the name of an integration", "add", "mcp:notes", "add of @mcp:notes"],
  ["and with the name of its service", "add", "mcp:github", "add of @mcp:github"],
  ["the integration itself", "add", "notes", "add of @notes"],
])("a call is named by %s", (_what, tool, target, name) => {
  expect(callName({ tool, target })).toBe(name);
});
