/** What the conformance runner starts with the address of its server: uses every tool there, through our own pool. */
import { createMcpPool } from "../../src/ai/mcp.ts";
import { serverAt } from "./mcp-server.ts";

const url = new URL(process.argv.at(-1) ?? "");
// The pool reaches only what is allowed by address.
url.hostname = "127.0.0.1";
const { signal } = new AbortController();

await using pool = createMcpPool();
const listing = await pool.listTools(serverAt(url.href), signal);
if (!listing.ok) throw new Error(listing.message);
for (const { name, parameters, call } of listing.tools) {
  const numbers = Object.keys(parameters["properties"] ?? {}).map((key) => [key, 1]);
  const { ok, text } = await call(Object.fromEntries(numbers), signal);
  if (!ok) throw new Error(`${name}: ${text}`);
}
