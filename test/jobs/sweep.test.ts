import { expect, test } from "bun:test";
import { appendFile, readdir, readFile, rename, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import { lockMailBytes } from "../../src/db/locks.ts";
import { sweepLater } from "../../src/jobs/erase.ts";
import { purgeLater } from "../../src/retention/purge.ts";
import { openSegments } from "../../src/lib/segments.ts";
import { measureMail, missingWords } from "../../src/db/missing-bytes.ts";
import { storeBytes } from "../../src/messages/stored-bytes.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { lettersOf, SIZE, storeMail, withSmallFiles } from "../support/mail-files.ts";

/** Files of some kilobytes, so that a few mails fill several. */
async function room(segment_bytes = 3 * SIZE): Promise<TestApp & { mail: string }> {
  const t = await testApp();
  const mail = join(t.app.config.data.dir, "mail");
  await using stores = new AsyncDisposableStack();
  stores.use(t);
  stores.use(await withSmallFiles(t.app, segment_bytes));
  const opened = stores.move();
  return { ...t, mail, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

/** Stores a mail of each letter. */
async function store({ app }: TestApp, letters: string): Promise<void> {
  for (const letter of letters) await storeMail(app, letter);
}

async function sweep(t: TestApp): Promise<void> {
  await t.app.write((tx) => sweepLater(t.app, tx));
  await t.drain();
}

/** Deletes mails and leaves what they held to the sweep. */
async function drop({ app }: TestApp, letters: string): Promise<void> {
  await app.db.deleteFrom("raw_mails").where("id", "in", letters.split("")).execute();
}

/** The letters that can be read, each from its own row. */
async function readable({ app }: TestApp): Promise<string> {
  return Object.values(await lettersOf(app)).join("");
}

/** The letters that lie in a file, in order; dots for zeros. */
async function lettersIn(t: { mail: string }, segment: number): Promise<string> {
  const bytes = await readFile(join(t.mail, `0000000${segment}.seg`));
  const letters = Array.from({ length: Math.ceil(bytes.length / SIZE) }, (_, index) => {
    const seen = new Set(bytes.subarray(index * SIZE, (index + 1) * SIZE));
    return [...seen].map((byte) => (byte === 0 ? "." : String.fromCharCode(byte))).join("");
  });
  return letters.join(" ");
}

test("what was written and never committed is overwritten, at the end of a file and in its middle", async () => {
  await using t = await room(10 * SIZE);
  await store(t, "a");
  const failed = t.app.write(async (tx) => {
    storeBytes(t.app, "x", Buffer.alloc(SIZE, "x"));
    await t.app.segments.flush();
    await tx.selectFrom("raw_mails").select("id").execute();
    throw new Error("the commit never came");
  });
  await expect(failed).rejects.toThrow("never came");
  await store(t, "b");
  const torn = t.app.segments.append(Buffer.alloc(SIZE, "y"));
  await t.app.segments.flush();
  expect(await lettersIn(t, 1)).toBe("a x b y");
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe("a . b .");
  expect(await readable(t)).toBe("ab");
  // Its place is not given out again.
  await store(t, "c");
  const { segment_offset } = await t.app.db
    .selectFrom("raw_mails")
    .select("segment_offset")
    .where("id", "=", "c")
    .executeTakeFirstOrThrow();
  expect(segment_offset).toBe(torn.offset + SIZE);
});

test("what a start finds behind the last named byte is overwritten", async () => {
  await using t = await room();
  await store(t, "a");
  await appendFile(join(t.mail, "00000001.seg"), Buffer.alloc(SIZE, "x"));
  await using restarted = await openSegments(t.mail);
  t.app.segments = restarted;
  expect(await lettersIn(t, 1)).toBe("a x");
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe("a .");
});

test("bytes of a transaction that is open meanwhile are left alone", async () => {
  await using t = await room(10 * SIZE);
  await store(t, "a");
  const open = Promise.withResolvers<void>();
  const written = Promise.withResolvers<void>();
  const commit = t.app.write(async (tx) => {
    const row = { id: "b", size: SIZE, created: 0, purged_at: null };
    await tx
      .insertInto("raw_mails")
      .values({ ...row, ...storeBytes(t.app, "b", Buffer.alloc(SIZE, "b")) })
      .execute();
    await t.app.segments.flush();
    written.resolve();
    await open.promise;
  });
  await written.promise;
  const swept = sweep(t);
  open.resolve();
  await Promise.all([commit, swept]);
  expect(await readable(t)).toBe("ab");
});

test("files of which nothing is named are deleted, but the last one; and the room of the rest is given back", async () => {
  await using t = await room();
  await store(t, "abcdefg");
  expect(await readdir(t.mail)).toHaveLength(3);
  expect(await measureMail(t.app)).toMatchObject({ live_bytes: 7 * SIZE });
  await drop(t, "abcdg");
  expect((await measureMail(t.app)).free_bytes).toBeGreaterThanOrEqual(5 * SIZE);
  await sweep(t);
  const { live_bytes, free_bytes } = await measureMail(t.app);
  // But for blocks of which only a part is needed.
  expect([live_bytes, free_bytes < SIZE / 4]).toEqual([2 * SIZE, true]);
  expect((await readdir(t.mail)).sort()).toEqual(["00000002.seg", "00000003.seg"]);
  expect(await lettersIn(t, 2)).toBe(". e f");
  expect(await lettersIn(t, 3)).toBe(".");
  const { size, blocks } = await stat(join(t.mail, "00000002.seg"));
  expect([size, blocks * 512 < size - SIZE / 2]).toEqual([3 * SIZE, true]);
  expect(await readable(t)).toBe("ef");
});

test("what is left in a file that is mostly empty is moved, and the file goes", async () => {
  await using t = await room(5 * SIZE);
  await store(t, "abcdefgh");
  await drop(t, "acde");
  await sweep(t);
  expect(await readdir(t.mail)).toEqual(["00000002.seg"]);
  expect(await lettersIn(t, 2)).toBe("f g h b");
  expect(await readable(t)).toBe("bfgh");
});

test("nothing goes while the database may have lost rows that name it", async () => {
  await using t = await room();
  await store(t, "ab");
  await drop(t, "a");
  const { lostCommits } = t.app;
  t.app.lostCommits = () => "3 pages";
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe("a b");
  t.app.lostCommits = lostCommits;
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe(". b");
});

test("nothing is overwritten while a backup copies the files; afterwards it is", async () => {
  await using t = await room();
  await store(t, "ab");
  await drop(t, "a");
  {
    using _backup = lockMailBytes(t.app.config.data.dir);
    await sweep(t);
    expect(await lettersIn(t, 1)).toBe("a b");
  }
  t.clock.advance("1m");
  await t.drain();
  expect(await lettersIn(t, 1)).toBe(". b");
});

test("a file that is gone is noticed and marked, and found again within the hour once it is back", async () => {
  await using t = await room();
  await store(t, "abcd");
  const path = join(t.mail, "00000001.seg");
  await rename(path, `${path}.away`);
  await sweep(t);
  expect(await missingWords(t.app)).toContain("3 mails");
  await rename(`${path}.away`, path);
  await t.app.write((tx) => purgeLater(t.app, tx));
  t.clock.advance("1h");
  await t.drain();
  expect(await missingWords(t.app)).toBeUndefined();
  expect(await readable(t)).toBe("abcd");
  await truncate(path, SIZE);
  await sweep(t);
  expect(await missingWords(t.app)).toContain("2 mails");
  expect(await readable(t)).toBe("a??d");
});
