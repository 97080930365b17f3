import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { scripts } from "../package.json";
import { splitListen } from "../src/config/forms.ts";
import { defaultConfig } from "../src/config/config.ts";

const ROOT = join(import.meta.dir, "..");

describe("the Dockerfile", () => {
  test("copies only what is there and what .dockerignore lets in", async () => {
    const copied = (await instructions("COPY"))
      .filter((line) => !line.startsWith("--from="))
      .flatMap((line) => line.split(/\s+/).slice(0, -1));
    const letIn = new Set((await text(".dockerignore")).split("\n"));
    expect(copied.length).toBeGreaterThan(5);
    expect(copied.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(copied.filter((path) => !letIn.has(`!${path}`))).toEqual([]);
    const run = (await instructions("RUN")).flatMap((line) => /bun (scripts\/\S+)/.exec(line)?.[1] ?? []);
    expect(run).toEqual(["scripts/build.ts"]);
  });

  test("runs as nobody in particular, with the data on a volume and the ports of the defaults open", async () => {
    const { server, smtp } = defaultConfig();
    const ports = [smtp.listen, server.listen].map((listen) => String(splitListen(listen)?.port));
    expect(await instructions("EXPOSE")).toEqual([ports.join(" ")]);
    expect(await instructions("VOLUME")).toEqual(["/data"]);
    expect(await instructions("ENV")).toEqual([
      "MAILWRIGHT_DATA__DIR=/data",
      "MAILWRIGHT_MCP__DIR=/programs",
      "BUN_CONFIG_MAX_HTTP_REQUESTS=4096",
    ]);
    expect((await instructions("USER"))[0]).not.toMatch(/^(root|0)\b/);
  });

  test("asks the healthcheck command, and builds with the Bun that the project is pinned to", async () => {
    expect((await instructions("HEALTHCHECK"))[0]).toContain('CMD ["mailwright", "healthcheck"]');
    const [image] = await instructions("FROM");
    expect(image).toBe(`oven/bun:${Bun.version} AS build`);
    expect(await text("README.md")).toContain(`bun@${Bun.version} run verify`);
    expect(await text(".ci/run")).toContain(`bun@${Bun.version} run verify`);
  });
});

describe(".ci/run", () => {
  const summary = "\n 12 pass\n 1 skip\n 0 fail\n 30 expect() calls\n";

  test("ends with the numbers of the test runner, and with its exit code", async () => {
    expect(await ci(`cat <<< "${summary}"`)).toEqual({ code: 0, last: "12 passed, 0 failed" });
    const failing = summary.replace("0 fail", "2 fail");
    expect(await ci(`cat <<< "${failing}"; exit 1`)).toEqual({ code: 1, last: "12 passed, 2 failed" });
  });

  test("counts a check that fails before any test as a failure", async () => {
    expect(await ci("echo 'src/a.ts: error'; exit 3")).toEqual({ code: 3, last: "0 passed, 1 failed" });
  });

  test("does not take a run without any test for a success", async () => {
    expect(await ci("true")).toEqual({ code: 1, last: "0 passed, 1 failed" });
  });

  test("gives its commands no input to wait for", async () => {
    const asks = `read -r line && exit 9; cat <<< "${summary}"`;
    expect(await ci(asks)).toEqual({ code: 0, last: "12 passed, 0 failed" });
  });
});

test("the commands of package.json name files that are there", () => {
  const files = Object.values(scripts).flatMap((line) => line.match(/\b(src|scripts)\/\S+\.ts\b/g) ?? []);
  expect(files.length).toBeGreaterThan(2);
  expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

/** Runs the script with stand-ins for `npx` and `apt-get`. */
async function ci(npx: string): Promise<{ code: number; last: string | undefined }> {
  const folder = await mkdtemp(join(tmpdir(), "mailwright-ci-"));
  for (const [name, body] of Object.entries({ npx, "apt-get": "true" })) {
    await Bun.write(join(folder, name), `#!/usr/bin/env bash\n${body}\n`);
    await chmod(join(folder, name), 0o755);
  }
  const process = Bun.spawn([join(ROOT, ".ci/run")], {
    env: { PATH: `${folder}:/usr/local/bin:/usr/bin:/bin` },
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
  });
  const out = await new Response(process.stdout).text();
  const code = await process.exited;
  await rm(folder, { recursive: true });
  return { code, last: out.trimEnd().split("\n").at(-1) };
}

async function instructions(name: string): Promise<string[]> {
  const lines = (await text("Dockerfile")).split("\n");
  return lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
}

function text(path: string): Promise<string> {
  return Bun.file(join(ROOT, path)).text();
}
