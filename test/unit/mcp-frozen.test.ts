import { join } from "node:path";
import { expect, test } from "bun:test";
import { startMcpStandIn } from "../support/mcp-server.ts";

const SCRIPT = join(import.meta.dir, "fixtures/list-tools.ts");
const LIMIT_MS = 2_000;
/** Longer than all limits together. */
const FROZEN_MS = 5_000;

test.concurrent.each(["server/discover", "initialize", "tools/list"])(
  "a process that is stopped while a tool server answers hears it, though all limits are over: %s",
  async (method) => {
    const asked = Promise.withResolvers<void>();
    const may = Promise.withResolvers<void>();
    const methods: string[] = [];
    await using server = startMcpStandIn(async ({ message }) => {
      if (message?.method !== undefined) methods.push(message.method);
      if (message?.method !== method) return undefined;
      asked.resolve();
      await may.promise;
      return undefined;
    });
    const child = Bun.spawn([process.execPath, SCRIPT, server.url, String(LIMIT_MS)], { stdout: "pipe" });
    await asked.promise;
    child.kill("SIGSTOP");
    may.resolve();
    await Bun.sleep(FROZEN_MS);
    child.kill("SIGCONT");
    const said = await new Response(child.stdout).text();
    expect(JSON.parse(said)).toEqual(["echo"]);
    expect(methods.filter((name) => name === method)).toHaveLength(1);
  },
  20_000,
);
