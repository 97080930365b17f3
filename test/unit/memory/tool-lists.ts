import { expect, test } from "bun:test";
import { createMcpPool } from "../../../src/ai/mcp.ts";
import { MB } from "../../../src/lib/sizes.ts";
import { serverAt, startMcpStandIn, tool } from "../../support/mcp-server.ts";

const SERVERS = 4;
const PAGE = Array.from({ length: 20 }, () => ({ description: "x".repeat(390_000) }));

/** In bytes: what is left of texts once they are collected. */
function held(): number {
  Bun.gc(true);
  return process.memoryUsage().rss;
}

test("the tools of servers that describe them at length take no more than what is offered of them", async () => {
  let page = 0;
  await using server = startMcpStandIn(({ message }) => {
    if (message?.method !== "tools/list") return undefined;
    page += 1;
    return { tools: PAGE.map((words, index) => tool(`t${page}-${index}`, words)), nextCursor: String(page) };
  });
  await using pool = createMcpPool();
  const list = (id: number) =>
    pool.listTools({ ...serverAt(server.url), id: String(id) }, new AbortController().signal);
  await list(0);
  const before = held();
  for (let id = 1; id <= SERVERS; id += 1) expect(await list(id)).toMatchObject({ ok: true, left_out: 0 });
  // All that they said is 78 MB each.
  expect(held() - before).toBeLessThan(150 * MB);
});
