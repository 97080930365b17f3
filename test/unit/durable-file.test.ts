import { expect, test } from "bun:test";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeOnce } from "../../src/lib/durable-file.ts";

test("of several that make the same file at once one wins, and all are told what it says", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-durable-"));
  try {
    const path = join(dir, "key");
    const told = await Promise.all(["one", "two", "three"].map((text) => writeOnce(path, text)));
    expect(new Set(told).size).toBe(1);
    expect(await writeOnce(path, "later")).toBe(told[0] ?? "");
    expect(await readdir(dir)).toEqual(["key"]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  } finally {
    await rm(dir, { recursive: true });
  }
});
