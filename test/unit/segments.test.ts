import { expect, test } from "bun:test";
import { appendFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSegments } from "../../src/lib/segments.ts";

async function tempDir() {
  const path = await mkdtemp(join(tmpdir(), "segments-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

test("gives back what was appended, many at once", async () => {
  await using dir = await tempDir();
  await using store = openSegments(dir.path);
  const blobs = Array.from({ length: 50 }, (_, index) => Buffer.alloc(1_000 + index, index));
  const ranges = await Promise.all(blobs.map((blob) => store.append(blob)));
  const read = await Promise.all(ranges.map((range) => store.read(range)));
  expect(read).toEqual(blobs);
  expect(await readdir(dir.path)).toEqual(["00000001.seg"]);
});

test("goes on after the bytes of an earlier process, torn ones included", async () => {
  await using dir = await tempDir();
  const first = await (async () => {
    await using store = openSegments(dir.path);
    return store.append(Buffer.from("first"));
  })();
  await appendFile(join(dir.path, "00000001.seg"), "torn");
  await using store = openSegments(dir.path);
  const second = await store.append(Buffer.from("second"));
  expect(second).toEqual({ segment: 1, offset: 9, size: 6 });
  expect((await store.read(first)).toString()).toBe("first");
  expect((await store.read(second)).toString()).toBe("second");
});

test("begins a new file when one is full", async () => {
  await using dir = await tempDir();
  await using store = openSegments(dir.path, 10);
  const ranges = [];
  for (const text of ["0123456789", "abc", "defghijklmno", "p"])
    ranges.push(await store.append(Buffer.from(text)));
  expect(ranges.map((range) => range.segment)).toEqual([1, 2, 2, 3]);
  expect((await store.read(ranges[2] as (typeof ranges)[0])).toString()).toBe("defghijklmno");
});

test("rejects when the bytes cannot be written, and works again when they can", async () => {
  await using dir = await tempDir();
  const blocked = join(dir.path, "file");
  await Bun.write(blocked, "not a folder");
  await using store = openSegments(join(blocked, "mail"));
  await expect(store.append(Buffer.from("x"))).rejects.toThrow();
  await rm(blocked);
  expect(await store.append(Buffer.from("x"))).toEqual({ segment: 1, offset: 0, size: 1 });
});

test("refuses to read past the end", async () => {
  await using dir = await tempDir();
  await using store = openSegments(dir.path);
  await store.append(Buffer.from("abc"));
  await expect(store.read({ segment: 1, offset: 0, size: 4 })).rejects.toThrow("ends before byte 4");
});
