import { $, spawn } from "bun";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { end, freePort, temporaryFolder } from "./support.ts";

const PACKAGE = "@portkey-ai/gateway";
const UP_WITHIN_MS = 20_000;

export interface Gateway extends AsyncDisposable {
  url: string;
  version: string;
}

/** The peer of bench/route.ts as its authors ship it, on Node; undefined where it cannot be installed. */
export async function startGateway(): Promise<Gateway | undefined> {
  const dir = temporaryFolder();
  const folder = join(dir, "node_modules", PACKAGE);
  await Bun.write(join(dir, "package.json"), "{}");
  await $`${process.execPath} add --ignore-scripts ${PACKAGE}`.cwd(dir).quiet().nothrow();
  const script = join(folder, "build/start-server.js");
  if (!existsSync(script) || Bun.which("node") === null) {
    rmSync(dir, { recursive: true, force: true });
    return undefined;
  }
  const port = await freePort();
  const child = spawn(["node", script, `--port=${port}`, "--headless"], {
    cwd: dir,
    stdout: "ignore",
    stderr: "ignore",
  });
  const url = `http://127.0.0.1:${port}`;
  await answering(url);
  const { version } = (await Bun.file(join(folder, "package.json")).json()) as { version: string };
  return {
    url,
    version,
    async [Symbol.asyncDispose]() {
      await end(child);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function answering(url: string): Promise<void> {
  const deadline = Date.now() + UP_WITHIN_MS;
  for (;;) {
    try {
      await fetch(url);
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await Bun.sleep(100);
    }
  }
}
