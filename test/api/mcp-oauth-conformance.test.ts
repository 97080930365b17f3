import { expect, test } from "bun:test";
import { fileURLToPath } from "node:url";
import { freshToken } from "../../src/resources/integrations/tokens.ts";
import { testApp } from "../support/app.ts";
import { comeBack } from "../support/consent.ts";
import { browse } from "../support/oauth-mcp-server.ts";

const RUNNER = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
const CLIENT = fileURLToPath(import.meta.resolve("../support/mcp-auth-conformance-client.ts"));

/** The suites of OAuth, and how many scenarios each has. */
const SUITES = { auth: 14, backcompat: 2, draft: 3 };
/** Scenarios that ask for what this server does not do, and why. */
const NOT_FOR_US = {
  "auth/basic-cimd": "wants one fixed address as the client id, and this server has its own",
  "auth/scope-step-up": "wants a second consent in the middle of a call, when nobody sits at a browser",
};

/** What a scenario tells its client. */
interface Scenario {
  url: string;
  context: { client_id?: string; client_secret?: string };
}

test.each(Object.entries(SUITES))("the conformance suite %s of MCP passes", async (suite, count) => {
  await using driver = startDriver();
  const runner = Bun.spawn(
    [process.execPath, RUNNER, "client", "--command", `${process.execPath} ${CLIENT}`, "--suite", suite],
    { env: { ...process.env, DRIVER_URL: driver.url }, stdout: "pipe", stderr: "pipe" },
  );
  const said = (await new Response(runner.stdout).text()) + (await new Response(runner.stderr).text());
  const verdicts = [...said.matchAll(/^([✓✗]) (auth\/[\w-]+): (.*)$/gm)];
  expect(verdicts).toHaveLength(count);
  const failed = verdicts.filter(([, mark, name = ""]) => mark !== "✓" && !(name in NOT_FOR_US));
  expect(failed.map(([line]) => line)).toEqual([]);
});

/** Where the clients that the runner starts hand their scenarios over to this server. */
function startDriver() {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const fault = await faultOf((await request.json()) as Scenario);
      return new Response(fault, { status: fault === null ? 200 : 500 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

/** Connects, comes back and uses the server; null when all of it went well. */
async function faultOf({ url: base_url, context }: Scenario): Promise<string | null> {
  await using t = await testApp({ egress: { allow: ["127.0.0.1", "localhost"] } });
  const ada = await t.as("ada@example.com");
  const config = await registeredByHand(base_url, context);
  const { body: connection } = await ada.post("/connections", { kind: "mcp", base_url, config });
  const departure = await ada.post(`/integrations/mcp/${connection.id}/connect`);
  if (departure.status !== 200) return departure.body.detail;
  const arrival = await comeBack(t, ada, await browse(departure.body.authorize_url));
  if (arrival.status !== 200) return arrival.body;
  if ((await freshToken(t.app, connection.id)) === null) return "there is no token";
  const { body: verdict } = await ada.post(`/connections/${connection.id}/test`);
  return verdict.ok ? null : verdict.detail;
}

/** A client that the scenario tells of beforehand, as its owner would enter it. */
async function registeredByHand(base_url: string, { client_id, client_secret }: Scenario["context"]) {
  if (client_id === undefined) return null;
  const { origin, pathname } = new URL(base_url);
  const metadata = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`);
  const { authorization_servers } = (await metadata.json()) as { authorization_servers: string[] };
  return { client_id, client_secret, issuer: authorization_servers[0] };
}
