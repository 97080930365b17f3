import process from "node:process";

/**
 * What the conformance runner starts as an MCP client: hands its scenario over to the test, where this server itself
 * connects, and ends with 1 where that did not get as far as the tools.
 */
const { DRIVER_URL = "", MCP_CONFORMANCE_CONTEXT = "{}" } = process.env;
const scenario = { url: process.argv.at(-1), context: JSON.parse(MCP_CONFORMANCE_CONTEXT) as object };
const response = await fetch(DRIVER_URL, { method: "POST", body: JSON.stringify(scenario) });
console.error(await response.text());
process.exit(response.ok ? 0 : 1);
