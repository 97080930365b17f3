import type { Db } from "../../src/db/database.ts";
import { expect, test } from "bun:test";
import {
  appendFile,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { join } from "node:path";
import { olderDatabaseWarning } from "../../src/db/kept-position.ts";
import { lockMailBytes } from "../../src/db/locks.ts";
import { eraseLater, sweepLater } from "../../src/jobs/erase.ts";
import { purgeLater } from "../../src/operation/retention/purge.ts";
import { openSegments, rangesOf } from "../../src/lib/segments.ts";
import { measureMail, missingBytesWarning } from "../../src/db/missing-bytes.ts";
import { bodyOf, type Kept, KEPT, storeBytes } from "../../src/resources/messages/stored-bytes.ts";
import { testApp, type TestApp } from "../support/app.ts";
import { lettersOf, SIZE, storeMail, withSmallFiles } from "../support/mail-files.ts";
import { keepAll } from "../support/kept-bytes.ts";

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
  const bytes = Buffer.alloc(SIZE, "x");
  const failing = async (tx: Db): Promise<void> => {
    storeBytes(t.app, "x", bytes);
    await tx.selectFrom("raw_mails").select("id").execute();
    throw new Error("the commit never came");
  };
  await expect(t.app.write(failing, { stores: [bytes] })).rejects.toThrow("never came");
  await store(t, "b");
  const [torn = { offset: 0 }] = await keepAll(t.app.segments, [Buffer.alloc(SIZE, "y")]);
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
  const bytes = Buffer.alloc(SIZE, "b");
  const storing = async (tx: Db): Promise<void> => {
    const row = { id: "b", size: SIZE, created: 0, purged_at: null };
    await tx
      .insertInto("raw_mails")
      .values({ ...row, ...storeBytes(t.app, "b", bytes) })
      .execute();
    written.resolve();
    await open.promise;
  };
  const commit = t.app.write(storing, { stores: [bytes] });
  await written.promise;
  const swept = sweep(t);
  open.resolve();
  await Promise.all([commit, swept]);
  expect(await readable(t)).toBe("ab");
});

test("bytes whose transaction has yet to begin are left alone, also in a file that is not written any more", async () => {
  await using t = await room(2 * SIZE);
  await store(t, "a");
  const bytes = Buffer.alloc(SIZE, "b");
  const kept = await t.app.segments.keep([bytes]);
  await store(t, "c");
  await drop(t, "a");
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe(". b");
  const storing = async (tx: Db): Promise<void> => {
    const row = { id: "b", size: SIZE, created: 0, purged_at: null };
    await tx
      .insertInto("raw_mails")
      .values({ ...row, ...storeBytes(t.app, "b", bytes) })
      .execute();
  };
  await t.app.write(storing);
  await kept[Symbol.asyncDispose]();
  await sweep(t);
  expect(await readable(t)).toBe("bc");
  expect(await lettersIn(t, 1)).toBe(". b");
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

test("nothing is moved for two weeks after an upgrade: the archive from before it names where mails were then", async () => {
  await using t = await room(5 * SIZE);
  const { dir } = t.app.config.backup;
  const archive = join(dir, "before-0099-x.zip");
  await mkdir(dir);
  await writeFile(archive, "");
  await store(t, "abcdef");
  await drop(t, "acde");
  await utimes(archive, t.app.now(), t.app.now());
  await sweep(t);
  expect([await lettersIn(t, 1), await lettersIn(t, 2)]).toEqual([". b . . .", "f"]);
  t.clock.leap("15d");
  await sweep(t);
  expect(await readdir(t.mail)).toHaveLength(2);
  t.clock.leap("-15d");
  t.clock.advance("15d");
  await sweep(t);
  expect(await readdir(t.mail)).toEqual(["00000002.seg"]);
  expect(await readable(t)).toBe("bf");
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
  const { lostCommits } = t.app.upkeep;
  t.app.upkeep.lostCommits = () => "3 pages";
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe("a b");
  t.app.upkeep.lostCommits = lostCommits;
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe(". b");
});

test("nothing is moved or goes for two weeks while a newer database may name it, or until that is said to be gone", async () => {
  await using t = await room(5 * SIZE);
  const kept = join(t.mail, "position.json");
  const since = { segment: 2, offset: SIZE, older_since: t.app.now() };
  await store(t, "abcdef");
  await drop(t, "acde");
  await writeFile(kept, JSON.stringify(since));
  for (const leap of ["0m", "15d", "-15d", "13d"]) {
    t.clock.leap(leap);
    await sweep(t);
    expect([await lettersIn(t, 1), await lettersIn(t, 2)]).toEqual(["a b c d e", "f"]);
  }
  t.clock.leap("-13d");
  expect(await olderDatabaseWarning(t.app)).toContain(
    `What only that names in them is kept until 2026-01-29`,
  );
  t.clock.advance("15d");
  expect(await olderDatabaseWarning(t.app)).toBeUndefined();
  await sweep(t);
  expect(await readdir(t.mail)).not.toContain("00000001.seg");
  await drop(t, "b");
  await writeFile(kept, JSON.stringify({ ...since, older_since: t.app.calmNow() }));
  await sweep(t);
  expect(await lettersIn(t, 2)).toBe("f b");
  await rm(kept);
  await sweep(t);
  expect(await lettersIn(t, 2)).toBe("f .");
});

test("nothing is moved or goes while a restore point may name it: one that has the database, and no mails of its own", async () => {
  await using t = await room(5 * SIZE);
  const point = join(t.app.config.data.dir, "restore-points", "20260115T120000Z");
  await store(t, "abcdef");
  await drop(t, "acde");
  await mkdir(point, { recursive: true });
  await writeFile(join(point, "mailwright.db"), "");
  await sweep(t);
  expect([await lettersIn(t, 1), await lettersIn(t, 2)]).toEqual(["a b c d e", "f"]);
  await mkdir(join(point, "mail"));
  await sweep(t);
  expect(await readdir(t.mail)).toEqual(["00000002.seg"]);
  expect(await lettersIn(t, 2)).toBe("f b");
});

test("the folder of a restore point whose content was moved back keeps nothing", async () => {
  await using t = await room();
  await store(t, "ab");
  await drop(t, "a");
  await mkdir(join(t.app.config.data.dir, "restore-points", "20260115T120000Z"), { recursive: true });
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
  expect(await missingBytesWarning(t.app)).toContain("3 mails");
  await rename(`${path}.away`, path);
  await t.app.write((tx) => purgeLater(t.app, tx));
  t.clock.advance("1h");
  await t.drain();
  expect(await missingBytesWarning(t.app)).toBeUndefined();
  expect(await readable(t)).toBe("abcd");
  await truncate(path, SIZE);
  await sweep(t);
  expect(await missingBytesWarning(t.app)).toContain("2 mails");
  expect(await readable(t)).toBe("a??d");
});

test("what an earlier version stored without a checksum gets one: others at its place are told from then on", async () => {
  await using t = await room(1_000 * SIZE);
  // There are more rows than one query looks at.
  for (let index = 0; index < 250; index += 1)
    await storeMail(t.app, String.fromCharCode(97 + (index % 26)), String(index));
  const path = join(t.mail, "00000001.seg");
  const first = await readFile(path);
  const sums = await checksums(t);
  await t.app.db.updateTable("raw_mails").set({ checksum: null }).execute();
  await writeFile(path, Buffer.from(first).fill(0, 0, SIZE));
  await sweep(t);
  const sealed = await checksums(t);
  // Zeros are none of it, and are not made any.
  expect(sealed.get("0")).toBeNull();
  expect([...sealed].filter(([id]) => id !== "0")).toEqual([...sums].filter(([id]) => id !== "0"));
  await writeFile(
    path,
    Buffer.concat([first.subarray(0, SIZE), first.subarray(2 * SIZE), Buffer.alloc(SIZE, "x")]),
  );
  const now = await lettersOf(t.app);
  expect([now["0"], now["1"], now["2"]]).toEqual(["a", "?", "?"]);
});

async function checksums({ app }: TestApp): Promise<Map<string, number | null>> {
  const rows = await app.db.selectFrom("raw_mails").select(["id", "checksum"]).orderBy("id").execute();
  return new Map(rows.map(({ id, checksum }) => [id, checksum]));
}

test("what somebody is being sent is not overwritten meanwhile: not when it is deleted, and not by the sweep", async () => {
  await using t = await room(10 * SIZE);
  await store(t, "abc");
  const row = (id: string) =>
    t.app.db.selectFrom("raw_mails").select(KEPT).where("id", "=", id).executeTakeFirstOrThrow();
  const [first, second] = [await row("a"), await row("b")];
  const bodyOfRow = async (one: Kept) =>
    new Response(await bodyOf(t.app, "raw_mails", { row: one, who: "ann" }));
  const sent = [await bodyOfRow(first), await bodyOfRow(second)];
  await drop(t, "abc");
  await t.app.write((tx) => eraseLater(t.app, tx, rangesOf(first)));
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe("a b .");
  for (const body of sent) expect(new Set(await body.text()).size).toBe(1);
  // Nobody else is given it any more.
  expect(await bodyOf(t.app, "raw_mails", { row: second, who: "ann" })).toBeNull();
  t.clock.advance("11m");
  await sweep(t);
  expect(await lettersIn(t, 1)).toBe(". . .");
});

test("a file of which somebody is being sent a part stays until that is over", async () => {
  await using t = await room(SIZE);
  await store(t, "ab");
  const { db } = t.app;
  const row = await db.selectFrom("raw_mails").select(KEPT).where("id", "=", "a").executeTakeFirstOrThrow();
  const body = await bodyOf(t.app, "raw_mails", { row, who: "ann" });
  await drop(t, "a");
  await sweep(t);
  expect(await new Response(body).text()).toBe("a".repeat(SIZE));
  t.clock.advance("11m");
  await sweep(t);
  expect(await readdir(t.mail)).not.toContain("00000001.seg");
});
