import { describe, expect, test } from "bun:test";
import { actsUnasked, forbid, letActWhenNamed, mayUse } from "../../src/dashboard/pages/inboxes/scope.ts";

const SERVICE = { target: "sheets", label: "Sheets", server_id: null };
const SERVER = { target: "mcp:sheets", label: "Sheets", server_id: "one" };
const CALENDAR = { target: "mcp:calendar", label: "Calendar", server_id: "two" };
const TOOLS = [SERVICE, SERVER, CALENDAR];

function rulesOf(list: string[]) {
  return { scope: { targets: list, autonomous: list }, mcp_connection_ids: ["one", "two"] };
}

describe("what an inbox shows of its tools", () => {
  test.each([
    ["sheets", SERVICE],
    ["mcp:sheets", SERVER],
    ["calendar", CALENDAR],
    ["mcp:calendar", CALENDAR],
  ])("means one by %s", (entry, tool) => {
    const rules = rulesOf([entry]);
    expect(TOOLS.filter((one) => mayUse(rules, one))).toEqual([tool]);
    expect(TOOLS.filter((one) => actsUnasked(rules, one))).toEqual([tool]);
  });

  test("takes from one what it had, and leaves the other its own", () => {
    const rules = rulesOf(["sheets", "mcp:sheets"]);
    expect(letActWhenNamed(rules, SERVER).scope?.autonomous).toEqual(["sheets"]);
    expect(letActWhenNamed(rules, SERVICE).scope?.autonomous).toEqual(["mcp:sheets"]);
    expect(forbid(rules, SERVER, TOOLS).scope).toEqual({ targets: ["sheets"], autonomous: ["sheets"] });
  });
});
