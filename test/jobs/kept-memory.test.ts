import { expect, test } from "bun:test";
import { heavyBehind } from "../../src/db/due-jobs.ts";
import { plansOf } from "../support/query-plans.ts";
import { gate, setUp, use } from "./work-room.ts";
import { MB } from "../../src/lib/sizes.ts";

const SMALL = MB;
const ROOM = { slots: 512, bytes: 128 * MB };

/** Accounts with more small jobs than there is memory for, of which one ends only when told to. */
async function crowded({ accounts, jobs }: { accounts: number; jobs: number }) {
  const g = gate();
  const t = await setUp({ route: g.run, ...ROOM });
  const add = (account: string, weight: number) =>
    t.add({ share: { account, slots: null }, weight }, account);
  for (let n = 0; n < jobs; n += 1) for (let of = 0; of < accounts; of += 1) await add(`small ${of}`, SMALL);
  t.worker.start();
  const settle = async () => {
    let before = -1;
    while (before !== g.begun.length) {
      before = g.begun.length;
      for (let write = 0; write < 3; write += 1) await t.app.write(() => Promise.resolve());
    }
  };
  await settle();
  const end = async (count: number): Promise<void> => {
    for (let ends = 0; ends < count; ends += 1) {
      g.open();
      await settle();
    }
  };
  /** How many have to end before the job of an account begins. */
  const endsBefore = async (account: string, most: number): Promise<number> => {
    for (let ends = 0; ends <= most; ends += 1) {
      if (g.begun.includes(account)) return ends;
      await end(1);
    }
    return Number.POSITIVE_INFINITY;
  };
  return {
    g,
    t,
    add,
    settle,
    end,
    endsBefore,
    async [Symbol.asyncDispose]() {
      await t.app.db.deleteFrom("jobs").where("status", "=", "pending").execute();
      while (g.open() !== undefined || (await t.jobs()).length > 0) await settle();
      await t[Symbol.asyncDispose]();
    },
  };
}

test("a large job gets its memory before all others have ended twice, however much of theirs waits", async () => {
  await using room = await crowded({ accounts: 6, jobs: 60 });
  const full = room.g.begun.length;
  expect(full).toBeGreaterThan(100);
  await room.add("large", 40 * MB);
  await room.settle();
  expect(room.g.begun).not.toContain("large");
  // As many go past it as it needs memory, and then the same again is kept for it.
  expect(await room.endsBefore("large", full)).toBeLessThan(81);
  const others = room.g.begun.length;
  await room.end(60);
  expect(room.g.begun.length).toBeGreaterThan(others + 30);
});

test("one that is larger than all of the memory gets it as well", async () => {
  await using room = await crowded({ accounts: 6, jobs: 60 });
  const full = room.g.begun.length;
  await room.add("large", 400 * MB);
  expect(await room.endsBefore("large", 2 * full + 12)).toBeLessThanOrEqual(2 * full + 12);
});

test("whoever comes meanwhile begins small ones at once", async () => {
  await using room = await crowded({ accounts: 6, jobs: 60 });
  await room.add("large", 100 * MB);
  await room.end(20);
  const before = room.g.begun.length;
  await room.end(20);
  expect(room.g.begun).toHaveLength(before);
  await room.add("newcomer", SMALL);
  await room.g.count(before + 1);
  expect(room.g.begun.at(-1)).toBe("newcomer");
  expect(room.g.begun).not.toContain("large");
});

test("an account with many large ones has no more than half by it, and small ones go on as many as they are", async () => {
  await using room = await crowded({ accounts: 6, jobs: 100 });
  for (let n = 0; n < 30; n += 1) await room.add("large", 30 * MB);
  for (let ends = 0; ends < 400; ends += 1) {
    const running = (await room.t.jobs()).filter(({ status }) => status === "running");
    const ofLarge = running.filter(({ account }) => account === "large").length;
    expect(ofLarge).toBeLessThanOrEqual(2);
    await room.end(1);
  }
  const large = room.g.begun.filter((name) => name === "large").length;
  const small = room.g.begun.length - large;
  expect(large).toBeGreaterThanOrEqual(4);
  expect(small).toBeGreaterThan(300);
});

test("accounts with large ones take turns", async () => {
  await using room = await crowded({ accounts: 6, jobs: 100 });
  for (let n = 0; n < 10; n += 1) await room.add("many", 30 * MB);
  await room.add("one", 30 * MB);
  expect(await room.endsBefore("one", 300)).toBeLessThan(300);
  expect(room.g.begun.filter((name) => name === "many").length).toBeLessThanOrEqual(2);
});

test("nothing is kept any more for one that is taken away", async () => {
  await using room = await crowded({ accounts: 6, jobs: 60 });
  await room.add("large", 100 * MB);
  await room.end(60);
  const before = room.g.begun.length;
  await room.t.app.db.deleteFrom("jobs").where("account", "=", "large").execute();
  room.t.worker.wakeAll();
  await room.settle();
  expect(room.g.begun.length).toBeGreaterThan(before + 30);
});

test("a large one of strangers waits behind its household, and is begun after it", async () => {
  await using room = await crowded({ accounts: 5, jobs: 200 });
  for (let n = 0; n < 40; n += 1) await room.add("house", SMALL);
  await room.settle();
  await room.t.add(
    { share: { account: "house", slots: null, strangers: true }, weight: 40 * MB },
    "of strangers",
  );
  const endsBefore = await room.endsBefore("of strangers", 400);
  expect(room.g.begun.filter((name) => name === "house")).toHaveLength(40);
  expect(endsBefore).toBeLessThan(400);
});

test("a caller gets no memory that is kept for another, unless it is a small one", async () => {
  await using room = await crowded({ accounts: 6, jobs: 18 });
  await room.end(20);
  const caller = (weight: number) => use({ account: "eve", slots: null }, weight);
  const isTaken = (weight: number): boolean => room.t.worker.reserve("route_message", caller(weight));
  expect(isTaken(10 * MB)).toBe(true);
  room.t.worker.release("route_message", caller(10 * MB));
  await room.add("large", 100 * MB);
  await room.settle();
  expect(isTaken(10 * MB)).toBe(false);
  expect(isTaken(SMALL)).toBe(true);
  room.t.worker.release("route_message", caller(SMALL));
  expect(room.g.begun).not.toContain("large");
});

test("large ones are found by their index", async () => {
  await using t = await setUp({});
  const asked = { kind: "route_message", from: "", now: t.app.now(), full_targets: "[]" };
  const plans = await plansOf(t, () => heavyBehind(t.app.db, asked));
  const looks = plans.flatMap(({ lines }) => lines).filter((line) => line.includes(" jobs "));
  expect(looks).toEqual([expect.stringMatching(/^SEARCH jobs USING INDEX jobs_heavy/)]);
});
