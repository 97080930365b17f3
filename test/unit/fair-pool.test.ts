import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFairPool, THREADS_FOR_ALL } from "../../src/lib/fair-pool.ts";

const MOODY = "../test/mail/fixtures/moody-worker.ts";
const LIMIT_MS = 60_000;

let dir: string;
let count = 0;
/** A word that holds a thread until `release`. */
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

test("what holds the threads of one account, by itself and by strangers, holds up nobody else", async () => {
  await using pool = createFairPool(MOODY, { size: THREADS_FOR_ALL });
  const order: string[] = [];
  const run = async (who: string, input: string, strangers = false) => {
    const outcome = await pool.run({ who, strangers }, () => ({ input, limit_ms: LIMIT_MS }));
    order.push(`${who} ${outcome.ok}`);
  };
  const eve = [true, true, true, false, false, false].map((strangers) => run("eve", hold, strangers));
  for (const word of ["a", "b", "c"]) await run("ada", word);
  expect(order).toEqual(["ada true", "ada true", "ada true"]);
  await release();
  await Promise.all(eve);
});

test("each input is packed when its turn has come", async () => {
  await using pool = createFairPool(MOODY);
  const packed: string[] = [];
  const run = (who: string, input: string) =>
    pool.run({ who }, () => {
      packed.push(`${who} ${packed.length}`);
      return { input, limit_ms: LIMIT_MS };
    });
  const eve = [run("eve", hold), run("eve", "x"), run("eve", "y")];
  const ada = run("ada", "a");
  await Promise.resolve();
  expect(packed).toEqual(["eve 0"]);
  await release();
  await Promise.all([...eve, ada]);
  expect(packed).toEqual(["eve 0", "ada 1", "eve 2", "eve 3"]);
});
