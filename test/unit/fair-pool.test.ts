import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../src/errors.ts";
import { createFairPool, type FairLimits, PAUSES_MS, WORKERS_FOR_ALL } from "../../src/lib/fair-pool.ts";

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
  await using pool = createFairPool(MOODY, { size: WORKERS_FOR_ALL });
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

describe("an input that the machine gives no time", () => {
  const measure = () => () => 0;

  /** Runs one input of each attempt, and says how many there were. */
  async function runs(attempts: string[], limits: FairLimits, signal?: AbortSignal) {
    await using pool = createFairPool<{ said: string }>(MOODY, { pauses_ms: [0], measure, ...limits });
    let packed = 0;
    const turn = { who: "ada", ...(signal && { signal }) };
    const pack = () => {
      const input = attempts[packed++] ?? "one too many";
      return { input, limit_ms: input === "hang" ? 10 : LIMIT_MS };
    };
    return { outcome: await pool.run(turn, pack), packed };
  }

  test("is worked on again, ten seconds and a minute later", async () => {
    expect(PAUSES_MS).toEqual([10_000, 60_000]);
    const { outcome, packed } = await runs(["hang", "hang", "a"], { pauses_ms: PAUSES_MS.map(() => 5) });
    expect(outcome).toMatchObject({ ok: true, output: { said: "a" } });
    expect(packed).toBe(3);
  });

  test("is given up after that", async () => {
    const { outcome, packed } = await runs(["hang", "hang", "a"], {});
    expect(outcome).toEqual({ ok: false, problem: "held_up" });
    expect(packed).toBe(2);
  });

  test("but not one that has used it", async () => {
    const { outcome, packed } = await runs(["hang", "a"], { measure: () => () => Infinity });
    expect(outcome).toEqual({ ok: false, problem: "too_slow" });
    expect(packed).toBe(1);
  });

  test("holds no thread meanwhile", async () => {
    await using pool = createFairPool<{ said: string }>(MOODY, { pauses_ms: [LIMIT_MS], measure });
    const heldUp = pool.run({ who: "eve" }, () => ({ input: "hang", limit_ms: 10 }));
    expect(await pool.run({ who: "ada" }, () => ({ input: "a", limit_ms: LIMIT_MS }))).toMatchObject({
      ok: true,
    });
    // Closing the pool ends the pause as well.
    void pool[Symbol.asyncDispose]();
    expect(await heldUp.then(() => "not refused", messageOf)).toContain("closed");
  });

  test("is not waited for by who has given it up", async () => {
    const given_up = new AbortController();
    const used = () => {
      setTimeout(() => given_up.abort(new Error("given up")), 200);
      return 0;
    };
    const run = runs(["hang"], { pauses_ms: [LIMIT_MS], measure: () => used }, given_up.signal);
    expect(await run.then(() => "not refused", messageOf)).toBe("given up");
  });
});
