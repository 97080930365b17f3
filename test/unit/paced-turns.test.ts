import { expect, test } from "bun:test";
import { createPacedTurns, MAX_IN_HAND } from "../../src/lib/paced-turns.ts";

/** Pieces of work by a clock of their own; `done` in the order in which they ended. */
function desk() {
  let now = 0;
  const turns = createPacedTurns(() => now);
  const done: string[] = [];
  const work = async (who: string, name: string, ms: number): Promise<boolean> => {
    const turn = turns(who);
    if (!turn) return false;
    const end = await turn;
    now += ms;
    done.push(name);
    end();
    return true;
  };
  return { turns, done, work };
}

/** Whatever can go on without a turn of the event loop has gone on. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 200; turn++) await Promise.resolve();
}

function several(count: number, name: string): string[] {
  return Array.from({ length: count }, (_, index) => `${name} ${index + 1}`);
}

test("a piece that comes alone begins at once", () => {
  const { turns } = desk();
  for (const who of ["ada", "ada", "bob"]) {
    const end = turns(who);
    if (typeof end !== "function") throw new Error(`${who} waits`);
    end();
  }
});

test("short pieces follow each other; after two milliseconds of work, or one long piece, others get in", async () => {
  const d = desk();
  for (const name of several(30, "short")) void d.work("ada", name, 0.25);
  await settled();
  expect(d.done).toHaveLength(8);
  setImmediate(() => d.done.push("somebody else"));
  await Bun.sleep(0);
  await settled();
  expect(d.done.indexOf("somebody else")).toBeGreaterThanOrEqual(8);
  expect(d.done.indexOf("somebody else")).toBeLessThanOrEqual(16);
  const long = desk();
  for (const name of several(30, "long")) void long.work("ada", name, 7);
  await settled();
  expect(long.done).toEqual(["long 1"]);
});

test("a piece of another party overtakes those that wait", async () => {
  const d = desk();
  const all = several(40, "eve").map((name) => d.work("eve", name, 7));
  await settled();
  all.push(d.work("ada", "ada", 7), d.work("bob", "bob", 0.1));
  await Promise.all(all);
  expect(d.done.slice(0, 4)).toEqual(["eve 1", "ada", "bob", "eve 2"]);
  expect(d.done).toHaveLength(42);
});

test("a piece that waits for something keeps nobody from beginning", async () => {
  const d = desk();
  const end = await d.turns("eve");
  await d.work("ada", "ada", 0.1);
  await d.work("eve", "eve", 0.1);
  expect(d.done).toEqual(["ada", "eve"]);
  end?.();
  end?.();
});

test("of one party that brings long pieces 64 are in hand at once, and room comes back with each end", async () => {
  const d = desk();
  for (const name of several(3, "first")) await d.work("eve", name, 7);
  const taken = several(MAX_IN_HAND, "eve").map((name) => d.work("eve", name, 7));
  expect(MAX_IN_HAND).toBe(64);
  expect(d.turns("eve")).toBeUndefined();
  expect(d.turns("ada")).toBeDefined();
  expect(await Promise.race(taken)).toBe(true);
  expect(d.turns("eve")).toBeDefined();
  expect(d.turns("eve")).toBeUndefined();
});

test("those that have begun and wait for something count too", async () => {
  const d = desk();
  const ends: (() => void)[] = [];
  for (let count = 0; count < MAX_IN_HAND; count++) ends.push((await d.turns("eve")) ?? (() => undefined));
  await Bun.sleep(0);
  expect(d.turns("eve")).toBeUndefined();
  for (const end of ends) end();
  expect(await d.work("eve", "eve", 0.1)).toBe(true);
});

test("short pieces are taken however many there are at once, also where the machine has just stood still", async () => {
  const d = desk();
  for (const ms of [0.2, 40, 0.2, 0.2, 40]) await d.work("ada", "first", ms);
  const taken = await Promise.all(several(1_000, "ada").map((name) => d.work("ada", name, 0.2)));
  expect(taken).not.toContain(false);
});
