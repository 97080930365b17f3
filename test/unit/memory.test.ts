import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../..");
const FOLDER = join(import.meta.dir, "memory");

/** Processes that run many tests may keep all memory they ever had, which hides what a test takes of it. */
test.each(readdirSync(FOLDER))(
  "memory is limited, in a process of its own: %s",
  async (file) => {
    const run = Bun.spawn([process.execPath, "test", "--timeout", "120000", join(FOLDER, file)], {
      cwd: ROOT,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const said = await run.stderr.text();
    expect([await run.exited, said]).toEqual([0, expect.stringMatching(/^ *[1-9]\d* pass$/m)]);
  },
  300_000,
);
