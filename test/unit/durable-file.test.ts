import { expect, test } from "bun:test";
import { mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeDrafts, writeOnce } from "../../src/lib/durable-file.ts";

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

test("what killed processes have begun to write is removed, and nothing else", async () => {
  const dir = await mkdtemp(join(tmpdir(), "mailwright-durable-"));
  try {
    const [old, fresh] = [crypto.randomUUID(), crypto.randomUUID()];
    const names = [`key.pem.${old}.tmp`, `key.pem.${fresh}.tmp`, "key.pem", "notes.tmp", `key.${old}.other`];
    for (const name of names) await writeFile(join(dir, name), "k");
    for (const name of names.filter((one) => !one.includes(fresh)))
      await utimes(join(dir, name), 1_000, 1_000);
    await removeDrafts(dir, 60_000);
    expect((await readdir(dir)).toSorted()).toEqual(names.slice(1).toSorted());
    await removeDrafts(dir, 0);
    expect((await readdir(dir)).toSorted()).toEqual(names.slice(2).toSorted());
    await removeDrafts(join(dir, "nowhere"), 0);
  } finally {
    await rm(dir, { recursive: true });
  }
});
