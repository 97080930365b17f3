import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { memberOf } from "../../src/jobs/queue.ts";
import { createUses, fullTargets, type Room, type Use, whyNot } from "../../src/jobs/shares.ts";
import { seedFrom } from "../support/chance.ts";
import { MB } from "../../src/lib/sizes.ts";

const SEED = seedFrom("FUZZ_SEED", "shares");

/** Accounts that ask for slots as they like; `ask` says whether one was given, `end` ends the oldest. */
function pool(given: Partial<Room>) {
  const room: Room = { slots: 64, bytes: Infinity, target_slots: Infinity, ...given };
  const uses = createUses();
  const running: Use[] = [];
  return {
    room,
    uses,
    running,
    of: (account: string) => running.filter(({ share }) => share?.account === account).length,
    ask(account: string, more: Partial<Use> = {}): boolean {
      const use: Use = { share: { account, slots: null }, weight: 0, target: null, ...more };
      const free = room.slots - running.length;
      if (free === 0) return false;
      if (whyNot(use, { uses, room, free, most: Infinity }) !== null) return false;
      uses.add(use);
      running.push(use);
      return true;
    },
    end(index = 0): void {
      const [ended] = running.splice(index, 1);
      if (ended) uses.remove(ended);
    },
  };
}

/** Asks as often as it is given anything. */
function ask(p: ReturnType<typeof pool>, account: string, more: Partial<Use> = {}): number {
  let given = 0;
  while (p.ask(account, more)) given += 1;
  return given;
}

describe("slots", () => {
  test("are one account's but for a quarter, as long as it is alone; then each has no more than it leaves free", () => {
    const p = pool({ slots: 64 });
    expect(["a", "b", "c", "d", "e"].map((account) => ask(p, account))).toEqual([48, 8, 4, 2, 1]);
    const fair = pool({ slots: 64 });
    for (const account of ["a", "b", "c"]) fair.ask(account);
    expect(["a", "b", "c"].map((account) => ask(fair, account) + 1)).toEqual([31, 16, 9]);
  });

  test.each([
    [1, 1],
    [2, 1],
    [3, 2],
    [8, 4],
    [12, 8],
  ])("of %p the first account has %p", (slots, most) => {
    expect(ask(pool({ slots }), "a")).toBe(most);
  });

  test.each([8, 16, 64])("of %p some are left after three accounts that take what they can", (slots) => {
    const p = pool({ slots });
    for (const account of ["a", "b", "c"]) ask(p, account);
    expect(p.ask("d")).toBe(true);
  });

  test("of no account are more than half while others have any, whatever comes and goes", () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ ask: fc.constantFrom("a", "b", "c", "d") }) },
      { weight: 1, arbitrary: fc.record({ end: fc.nat() }) },
    );
    const property = fc.property(
      fc.integer({ min: 2, max: 40 }),
      fc.array(step, { maxLength: 300 }),
      (slots, steps) => {
        const p = pool({ slots });
        for (const one of steps) {
          if ("end" in one) p.end(one.end % Math.max(1, p.running.length));
          else {
            const others = p.running.length - p.of(one.ask);
            const given = p.ask(one.ask);
            if (given && others > 0) expect(p.of(one.ask)).toBeLessThanOrEqual(Math.max(1, slots / 2));
            if (!given && p.of(one.ask) === 0) expect(p.running).toHaveLength(slots);
          }
          if (new Set(p.running.map(({ share }) => share?.account)).size === 1)
            expect(p.running.length).toBeLessThanOrEqual(
              Math.max(Math.ceil(slots / 2), slots - Math.max(4, slots / 4)),
            );
        }
      },
    );
    fc.assert(property, { seed: SEED, numRuns: 300 });
  });
});

describe("what strangers cause", () => {
  const of = (account: string, slots: number | null, strangers: boolean): Partial<Use> => ({
    share: { account, slots, strangers },
  });

  test.each([2, 3, 10])("leaves one of the %p slots of a plan to the household, and no more", (slots) => {
    const p = pool({ slots: 64 });
    expect(ask(p, "a", of("a", slots, true))).toBe(slots - 1);
    expect(ask(p, "a", of("a", slots, false))).toBe(1);
    p.end(p.running.findIndex(({ share }) => share?.strangers === true));
    // With a slot of its own the household lets them have the rest.
    expect(ask(p, "a", of("a", slots, true))).toBe(1);
  });

  test("runs all the same where there is but one slot", () => {
    const p = pool({ slots: 64 });
    expect(ask(p, "a", of("a", 1, true))).toBe(1);
    expect(p.ask("a", of("a", 1, false))).toBe(false);
  });

  test.each([
    [3, 1],
    [8, 3],
    [64, 47],
  ])("of %p slots without a plan has %p, and the household another", (slots, most) => {
    const p = pool({ slots });
    expect(ask(p, "a", of("a", null, true))).toBe(most);
    expect(p.ask("a", of("a", null, false))).toBe(true);
  });

  test("leaves memory for as large a job of the household", () => {
    const p = pool({ bytes: 512 * MB });
    const large = { weight: 60 * MB };
    expect(ask(p, "a", { ...of("a", null, true), ...large })).toBe(3);
    expect(p.ask("a", { ...of("a", null, false), ...large })).toBe(true);
  });

  test("never keeps a small job of the household waiting while more than one slot is free, nor takes more than before", () => {
    const step = fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({ ask: fc.constantFrom("a", "b", "c"), strangers: fc.boolean() }),
      },
      { weight: 1, arbitrary: fc.record({ end: fc.nat() }) },
    );
    const property = fc.property(
      fc.integer({ min: 2, max: 40 }),
      fc.option(fc.integer({ min: 2, max: 10 })),
      fc.array(step, { minLength: 40, maxLength: 300 }),
      (slots, plan, steps) => {
        const p = pool({ slots });
        for (const one of steps) {
          if ("end" in one) {
            p.end(one.end % Math.max(1, p.running.length));
            continue;
          }
          const own = p.running.filter(({ share }) => share?.account === one.ask);
          const household = own.filter(({ share }) => share?.strangers !== true).length;
          const free = slots - p.running.length;
          const given = p.ask(one.ask, of(one.ask, plan, one.strangers));
          if (!one.strangers && household === 0 && free > 1) expect(given).toBe(true);
          if (given && plan !== null) expect(own.length).toBeLessThan(plan);
          if (given && own.length > 0 && one.strangers && own.length < p.running.length - 1)
            expect(own.length + 1).toBeLessThanOrEqual(slots / 2);
        }
      },
    );
    fc.assert(property, { seed: SEED, numRuns: 300 });
  });
});

describe("memory", () => {
  test("is one account's up to the half of it, and its first job's whatever it takes", () => {
    const p = pool({ bytes: 512 * MB });
    expect(ask(p, "a", { weight: 120 * MB })).toBe(2);
    expect(p.ask("a", { weight: MB })).toBe(true);
    expect(p.ask("b", { weight: 200 * MB })).toBe(true);
    expect(p.ask("c", { weight: 200 * MB })).toBe(false);
    expect(p.ask("c", { weight: 2 * MB })).toBe(true);
    p.end();
    expect(p.ask("c", { weight: 90 * MB })).toBe(true);
  });

  test.each([1, 2, 5, 30])(
    "has room for a newcomer's small job after %d accounts that take what they can",
    (count) => {
      const p = pool({ bytes: 512 * MB });
      for (let account = 0; account < count; account++)
        for (const weight of [98, 58, 30, 10, 4, 2, 1]) ask(p, `eve${account}`, { weight: weight * MB });
      p.end(p.running.findIndex(({ share }) => share?.account === "eve0"));
      expect(p.ask("ada", { weight: 2 * MB })).toBe(true);
    },
  );

  test("is kept for others: two accounts that take what they can leave a quarter of it", () => {
    const p = pool({ bytes: 512 * MB });
    for (const account of ["a", "b"])
      for (const weight of [98, 58, 30, 2]) ask(p, account, { weight: weight * MB });
    expect(p.running.reduce((sum, { weight }) => sum + weight, 0)).toBeLessThanOrEqual(384 * MB);
    expect(p.ask("ada", { weight: 100 * MB })).toBe(true);
  });

  test("lets a job that is larger than all of it run when nothing else does", () => {
    const p = pool({ bytes: 64 * MB });
    expect(p.ask("a", { weight: 120 * MB })).toBe(true);
    expect(p.ask("b", { weight: MB })).toBe(false);
    p.end();
    expect(p.ask("b", { weight: MB })).toBe(true);
    expect(p.ask("a", { weight: 120 * MB })).toBe(false);
  });
});

describe("a target", () => {
  const slow = { target: "slow.example" };

  test("has as many slots as it may, of which each account has no more than it leaves free, and holds up nothing else", () => {
    const p = pool({ target_slots: 8 });
    expect(["a", "b", "c", "d", "e"].map((account) => ask(p, account, slow))).toEqual([4, 2, 1, 1, 0]);
    expect(p.ask("a", { target: "quick.example" })).toBe(true);
    p.end();
    expect(p.ask("a", slow)).toBe(false);
    expect(p.ask("e", slow)).toBe(true);
  });

  test("is named to a claim as full for whoever may have no more of it", () => {
    const p = pool({ target_slots: 3 });
    expect(fullTargets(p.uses, p.room)).toEqual([]);
    for (const account of ["a", "b", "c"]) p.ask(account, slow);
    expect(fullTargets(p.uses, p.room)).toEqual(["slow.example"]);
    p.end();
    expect(fullTargets(p.uses.fork(), p.room)).toEqual(
      ["b", "b/strangers", "c", "c/strangers"].map((line) => `${line}\nslow.example`),
    );
  });
});

describe("a group of accounts", () => {
  const member = (name: string) => memberOf("codes", name);

  test("has together what it leaves free, and each member of that no more than it leaves to the others", () => {
    const p = pool({ slots: 64 });
    const names = ["a", "b", "c", "d", "e", "f", "g"];
    expect(names.map((name) => ask(p, member(name)))).toEqual([16, 8, 4, 2, 1, 1, 0]);
    expect(ask(p, "ada")).toBe(16);
    p.end();
    p.end();
    expect(p.ask(member("g"))).toBe(false);
  });

  test("never has more than half, nor keeps anybody else from a slot, however many members come and go", () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ ask: fc.nat(200).map((n) => member(`${n}`)) }) },
      { weight: 1, arbitrary: fc.record({ end: fc.nat() }) },
    );
    const property = fc.property(
      fc.integer({ min: 2, max: 40 }),
      fc.array(step, { maxLength: 300 }),
      (slots, steps) => {
        const p = pool({ slots });
        for (const one of steps) {
          if ("end" in one) p.end(one.end % Math.max(1, p.running.length));
          else p.ask(one.ask);
          expect(p.running.length).toBeLessThanOrEqual(Math.ceil(slots / 2));
        }
        expect(p.ask("ada")).toBe(true);
      },
    );
    fc.assert(property, { seed: SEED, numRuns: 200 });
  });
});
