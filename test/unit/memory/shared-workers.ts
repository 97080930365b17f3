import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFileReader } from "../../../src/files/reader.ts";
import { createFairPool } from "../../../src/lib/fair-pool.ts";
import { fileOf, pdfOfPages, zlibBlanks } from "../../support/files.ts";

const MOODY = "../test/mail/fixtures/moody-worker.ts";
const LIMIT_MS = 60_000;
const NEVER = new AbortController().signal;

let dir: string;
let count = 0;
/** A word that holds a worker until `release`. */
let hold: string;
const release = () => Bun.write(hold.replace("until ", ""), "");

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "fair-pool-"));
});
beforeEach(() => {
  count += 1;
  hold = `until ${join(dir, String(count))}`;
});
afterAll(() => rm(dir, { recursive: true }));

test("what takes too much memory is given up at once, and what is worked on beside it goes on", async () => {
  await using pool = createFairPool<{ said: string }>(MOODY, { size: 3, memory_bytes: 64 * 1_048_576 });
  const packed: string[] = [];
  const run = (who: string, input: string) =>
    pool.run({ who }, () => {
      packed.push(who);
      return { input, limit_ms: LIMIT_MS };
    });
  const ada = run("ada", hold);
  expect(await run("eve", "grow")).toEqual({ ok: false, problem: "too_much_memory" });
  await release();
  expect((await ada).ok).toBe(true);
  expect(packed).toEqual(["ada", "eve"]);
});

const good = fileOf("good.txt", "read at once", "text/plain");

test("files that fill the memory cost a file beside them nothing", async () => {
  // A busy machine takes longer to fill the memory than a file may take to be read.
  await using reader = createFileReader({ read_file_within_ms: 120_000 });
  const bomb = fileOf("a.pdf", pdfOfPages([zlibBlanks(1_024)], "/FlateDecode"));
  const [bombs, goods] = await Promise.all([
    reader.read([bomb], NEVER, { account: "eve" }),
    reader.read(
      Array.from({ length: 20 }, () => good),
      NEVER,
      { account: "ada" },
    ),
  ]);
  expect(bombs.map(({ note }) => note)).toEqual(["Not read: a.pdf takes too much memory to read."]);
  expect(new Set(goods.map(({ text }) => text))).toEqual(new Set(["read at once"]));
}, 130_000);
