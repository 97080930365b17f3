import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const RUNNER = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
const CLIENT = fileURLToPath(import.meta.resolve("../support/mcp-conformance-client.ts"));

/** All scenarios for clients without OAuth but one: it is about forms for somebody to fill in, which are not offered. */
test.concurrent.each(["initialize", "tools_call", "sse-retry"])(
  "passes the conformance scenario %s",
  async (scenario) => {
    const folder = await mkdtemp(join(tmpdir(), "mailwright-conformance-"));
    const command = `${process.execPath} ${CLIENT}`;
    const child = Bun.spawn(
      [process.execPath, RUNNER, "client", "--command", command, "--scenario", scenario],
      {
        cwd: folder,
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const said = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    await rm(folder, { recursive: true });
    expect({ code: await child.exited, said: said.join("\n") }).toMatchObject({ code: 0 });
  },
);
