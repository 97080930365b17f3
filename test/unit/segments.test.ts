import { expect, spyOn, test } from "bun:test";
import { existsSync } from "node:fs";
import { appendFile, mkdtemp, open, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isStorageFault, storageWords } from "../../src/db/storage-faults.ts";
import { MailFilesError } from "../../src/lib/own-faults.ts";
import { openSegments } from "../../src/lib/segments.ts";
import { until } from "../support/until.ts";
import { keepAll, keepText } from "../support/kept-bytes.ts";

async function tempDir() {
  const path = await mkdtemp(join(tmpdir(), "segments-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

test("gives back what was kept", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  const blobs = Array.from({ length: 50 }, (_, index) => Buffer.alloc(1_000 + index, index));
  const ranges = await keepAll(store, blobs);
  expect(await Promise.all(ranges.map((range) => store.read(range)))).toEqual(blobs);
  expect(await readdir(dir.path)).toEqual(["00000001.seg"]);
});

test("takes more parts at once than the system does in one call, empty ones among them", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  const texts = Array.from({ length: 1_300 }, (_, index) => "x".repeat(index % 5) + (index % 7 ? index : ""));
  const ranges = await keepAll(
    store,
    texts.map((text) => Buffer.from(text)),
  );
  const read = await Promise.all(ranges.map((range) => store.read(range)));
  expect(read.map(String)).toEqual(texts);
});

test("says why the last write failed until one has worked", async () => {
  await using dir = await tempDir();
  await symlink("/dev/full", join(dir.path, "00000001.seg"));
  await using store = await openSegments(dir.path);
  expect(store.lastFault()).toBeUndefined();
  await expect(keepText(store, "first")).rejects.toMatchObject({ code: "ENOSPC" });
  expect(store.lastFault()).toMatchObject({ code: "ENOSPC" });
  await keepText(store, "second");
  expect(store.lastFault()).toBeUndefined();
});

test("uses no place again of which a write has failed: after one that was synced a new file is begun", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  const first = await keepText(store, "first");
  await using file = await open(join(dir.path, "00000001.seg"));
  const sync = spyOn(Object.getPrototypeOf(file), "datasync");
  sync.mockRejectedValueOnce(Object.assign(new Error("EIO"), { code: "EIO" }));
  await expect(keepText(store, "lost")).rejects.toMatchObject({ code: "EIO" });
  expect(store.position()).toEqual({ segment: 2, offset: 0 });
  // What of it was written takes up no room.
  expect((await store.files()).map(({ size }) => size)).toEqual([5]);
  sync.mockRejectedValueOnce(Object.assign(new Error("EIO"), { code: "EIO" }));
  await expect(keepText(store, "lost")).rejects.toMatchObject({ code: "EIO" });
  // Nothing was ever taken in that file, so it is made anew.
  expect(existsSync(join(dir.path, "00000002.seg"))).toBe(false);
  sync.mockRestore();
  const last = await keepText(store, "last");
  expect(last).toEqual({ segment: 2, offset: 0, size: 4 });
  expect([String(await store.read(first)), String(await store.read(last))]).toEqual(["first", "last"]);
});

test.each([
  ["EFBIG", /limit on the size of files/, /LimitFSIZE of the service, ulimit -f/],
  ["EDQUOT", /quota of the user/, /setquota/],
  ["EIO", /does not do what it is asked/, /dmesg/],
])("%s has its own words and mend", (code, message, fix) => {
  const error = new MailFilesError(Object.assign(new Error(code), { code }));
  expect(isStorageFault(error)).toBe(true);
  expect(storageWords(error)).toEqual({
    message: expect.stringMatching(message),
    fix: expect.stringMatching(fix),
  });
});

test("writes what has waited longest, and with it what is small", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  await keepText(store, "opens the file");
  await using file = await open(join(dir.path, "00000001.seg"));
  const sync = spyOn(Object.getPrototypeOf(file), "datasync");
  const sizes = [9_000_000, 9_000_001, 1, 17_000_000, 5];
  const ranges = await keepAll(
    store,
    sizes.map((size) => Buffer.alloc(size, 1)),
  );
  expect(sync).toHaveBeenCalledTimes(3);
  sync.mockRestore();
  expect(ranges.map(({ size }) => size)).toEqual(sizes);
  const inOrder = ranges.toSorted((one, other) => one.offset - other.offset);
  expect(inOrder.map(({ size }) => size)).toEqual([9_000_000, 1, 5, 9_000_001, 17_000_000]);
});

test("what no transaction took is no part of a file any more, and its place is given to nobody else", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  const [one, other, next] = ["one", "other", "next"].map((text) => Buffer.from(text.padEnd(100_000, text)));
  if (!one || !other || !next) throw new Error("nothing to keep");
  const kept = await store.keep([one, other]);
  expect(store.settledEnd()).toEqual({ segment: 1, offset: 0 });
  expect(store.position()).toEqual({ segment: 1, offset: 200_000 });
  const taken = store.take(other);
  expect([taken, store.take(other)]).toEqual([{ segment: 1, offset: 100_000, size: 100_000 }, undefined]);
  await kept[Symbol.asyncDispose]();
  expect(store.take(one)).toBeUndefined();
  expect(store.settledEnd()).toEqual(store.position());
  const [after] = await keepAll(store, [next]);
  expect(after).toEqual({ segment: 1, offset: 200_000, size: 100_000 });
  expect(await store.read({ segment: 1, offset: 100_000, size: 100_000 })).toEqual(other);
  const [{ disk_bytes } = { disk_bytes: 0 }] = await store.files();
  expect(disk_bytes).toBeLessThan(250_000);
});

test("what has waited is written by no process that has lost its lock meanwhile", async () => {
  await using dir = await tempDir();
  let gone = false;
  const refuseIfGone = (): void => {
    if (gone) throw new Error("the lock is gone");
  };
  await using store = await openSegments(dir.path, { refuseIfGone });
  await keepText(store, "opens the file");
  await using file = await open(join(dir.path, "00000001.seg"));
  const answer = Promise.withResolvers<undefined>();
  const begun = Promise.withResolvers<void>();
  const sync = spyOn(Object.getPrototypeOf(file), "datasync").mockImplementationOnce(() => {
    begun.resolve();
    return answer.promise;
  });
  const first = keepText(store, "first");
  await begun.promise;
  const second = keepText(store, "second");
  gone = true;
  answer.resolve(undefined);
  expect((await first).size).toBe(5);
  await expect(second).rejects.toThrow("the lock is gone");
  sync.mockRestore();
});

test("nothing is written where another process has written", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  await keepText(store, "first");
  await appendFile(join(dir.path, "00000001.seg"), "of another");
  await expect(keepText(store, "lost")).rejects.toMatchObject({ code: "SEGMENT_GONE" });
  expect(await Bun.file(join(dir.path, "00000001.seg")).text()).toBe("firstof another");
  expect(await keepText(store, "next")).toMatchObject({ segment: 2, offset: 0 });
});

test("bytes that two want to store are kept for each, and what one does not take stays the other's", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  const bytes = Buffer.from("both");
  const [one, other] = await Promise.all([store.keep([bytes]), store.keep([bytes])]);
  const taken = store.take(bytes);
  await one[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  expect(store.take(bytes)).toBeUndefined();
  expect(String(await store.read(taken ?? { segment: 9, offset: 0, size: 0 }))).toBe("both");
});

test("goes on after the bytes of an earlier process, torn ones included", async () => {
  await using dir = await tempDir();
  const first = await (async () => {
    await using store = await openSegments(dir.path);
    const range = await keepText(store, "first");
    return range;
  })();
  await appendFile(join(dir.path, "00000001.seg"), "torn");
  await using store = await openSegments(dir.path);
  const second = await keepText(store, "second");
  expect(second).toEqual({ segment: 1, offset: 9, size: 6 });
  expect(String(await store.read(first))).toBe("first");
  expect(String(await store.read(second))).toBe("second");
});

test("begins a new file when one is full, also within one batch", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path, { segment_bytes: 10 });
  const texts = ["0123456789", "abc", "defghijklmno", "p"];
  const ranges = await keepAll(
    store,
    texts.map((text) => Buffer.from(text)),
  );
  expect(ranges.map((range) => range.segment)).toEqual([1, 2, 2, 3]);
  const read = await Promise.all(ranges.map((range) => store.read(range)));
  expect(read.map(String)).toEqual(texts);
});

test("begins anew where a write has failed", async () => {
  await using dir = await tempDir();
  const mail = join(dir.path, "mail");
  await using store = await openSegments(mail);
  await rename(mail, `${mail}-away`);
  await writeFile(mail, "");
  await expect(keepText(store, "lost")).rejects.toThrow("ENOTDIR");
  await rm(mail);
  await rename(`${mail}-away`, mail);
  const range = await keepText(store, "kept");
  expect(range).toEqual({ segment: 1, offset: 0, size: 4 });
  expect(String(await store.read(range))).toBe("kept");
});

test("a disk that does not answer is waited for once, and all is well when it does", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path, { write_ms: 50 });
  const first = await keepText(store, "first");
  await using file = await open(join(dir.path, "00000001.seg"));
  const answer = Promise.withResolvers<undefined>();
  const sync = spyOn(Object.getPrototypeOf(file), "datasync").mockReturnValueOnce(answer.promise);
  const late = await keepText(store, "late").catch((error: unknown) => error);
  expect(storageWords(late)).toEqual({
    message: "The disk of the mail files does not answer",
    fix: "See that the disk or share with the folder mail is there; nothing else is to be done.",
  });
  expect(store.lastFault()).toBe(late as MailFilesError);
  await expect(keepText(store, "x")).rejects.toThrow("ETIMEDOUT");
  await expect(store.check()).rejects.toMatchObject({ code: "ETIMEDOUT" });
  await expect(store.read(first)).rejects.toMatchObject({ code: "ETIMEDOUT" });
  answer.resolve(undefined);
  sync.mockRestore();
  await until(() =>
    store.check().then(
      () => true,
      () => false,
    ),
  );
  const next = await keepText(store, "next");
  expect(store.lastFault()).toBeUndefined();
  expect([String(await store.read(first)), String(await store.read(next))]).toEqual(["first", "next"]);
});

test("gives nothing for a range past the end", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  await keepText(store, "abc");
  expect(await store.read({ segment: 1, offset: 0, size: 4 })).toBeNull();
  expect(await store.read({ segment: 2, offset: 0, size: 1 })).toBeNull();
});

test("erases ranges in every file, and no byte beside them", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path, { segment_bytes: 3_000_000 });
  const blobs = [1_500_000, 2_500_000, 10, 1_200_000, 7].map((size, index) => Buffer.alloc(size, index + 1));
  const ranges = await keepAll(store, blobs);
  const [, second, , fourth] = ranges;
  if (!second || !fourth) throw new Error("nothing was appended");
  expect([second.segment, fourth.segment]).toEqual([1, 2]);
  await store.erase([second, fourth]);
  // Once more, as after a crash in the middle.
  await store.erase([second]);
  const read = await Promise.all(ranges.map((range) => store.read(range)));
  expect(read.map((bytes) => new Set(bytes ?? []))).toEqual([1, 0, 3, 0, 5].map((byte) => new Set([byte])));
  expect(read.map((bytes) => bytes?.length)).toEqual(blobs.map((blob) => blob.length));
});

test("erases nothing behind the end of a file, or in a file that is gone", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  const range = await keepText(store, "short");
  await store.erase([{ ...range, size: 5_000_000 }]);
  await store.erase([
    { ...range, offset: 100 },
    { ...range, segment: 7 },
  ]);
  expect(await readdir(dir.path)).toEqual(["00000001.seg"]);
  expect((await Bun.file(join(dir.path, "00000001.seg")).bytes()).length).toBe(5);
});

test("makes its folder again when that is deleted under it, and puts nothing at the place of what was in it", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(join(dir.path, "mail"), { segment_bytes: 10 });
  await keepText(store, "first, and full");
  await rm(join(dir.path, "mail"), { recursive: true });
  const next = await keepText(store, "next");
  expect(String(await store.read(next))).toBe("next");
  await rm(join(dir.path, "mail"), { recursive: true });
  await expect(keepText(store, "more")).rejects.toMatchObject({ code: "SEGMENT_GONE" });
  const last = await keepText(store, "last");
  expect(String(await store.read(last))).toBe("last");
  expect(await readdir(join(dir.path, "mail"))).toEqual(["00000003.seg"]);
});

test("leaves the place of a file free that was gone at the start", async () => {
  await using dir = await tempDir();
  await using store = await openSegments(dir.path);
  await keepText(store, "first");
  await using restarted = await openSegments(dir.path);
  await rename(join(dir.path, "00000001.seg"), join(dir.path, "away"));
  await expect(keepText(restarted, "second")).rejects.toMatchObject({ code: "SEGMENT_GONE" });
  expect(await readdir(dir.path)).toEqual(["away"]);
});

test("says of all that the system keeps it from that the machine is at fault, and goes on once that is over", async () => {
  await using dir = await tempDir();
  const [mail, away] = [join(dir.path, "mail"), join(dir.path, "away")];
  await using store = await openSegments(mail);
  const first = await keepText(store, "first");
  await store.check();
  await rename(mail, away);
  await writeFile(mail, "");
  const tries = [
    keepText(store, "lost"),
    store.check(),
    store.read(first),
    store.files(),
    store.erase([first]),
  ];
  for (const outcome of await Promise.allSettled(tries)) {
    const { reason } = outcome as PromiseRejectedResult;
    expect([reason.code, isStorageFault(reason)]).toEqual(["ENOTDIR", true]);
    expect(storageWords(reason).message).toBe("The files of mails cannot be used (ENOTDIR)");
  }
  await rm(mail);
  await rename(away, mail);
  await store.check();
  const last = await keepText(store, "last");
  expect([String(await store.read(first)), String(await store.read(last))]).toEqual(["first", "last"]);
});
