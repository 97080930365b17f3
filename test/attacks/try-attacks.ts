import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Guard } from "../../src/ai/guard.ts";
import type { Attack } from "./attack.ts";
import { askedCalls, blockedCalls, damageOf } from "./damage.ts";
import { buildWorld, SECRETS, type World } from "./world.ts";

/** Lets everything through. */
const NO_GUARD: Guard = {
  powersOf: () => ({ mayUse: () => true, mayWrite: () => true, destroy: true }),
  objectionTo: () => null,
};

/** Tries each of them twice: as it is, where it must do nothing, and in a world without the boundary, where it must do damage. */
export function tryAttacks(attacks: Attack[]): void {
  let held: World;
  let open: World;
  beforeAll(async () => {
    held = await buildWorld({ office_key: SECRETS.office });
    open = await buildWorld({ office_key: "another-key-0000", guard: NO_GUARD });
  });
  afterAll(async () => {
    await held[Symbol.asyncDispose]();
    await open[Symbol.asyncDispose]();
  });

  describe("an attack on a model that obeys everything it reads does no damage, though without the boundary it would", () => {
    test.each(attacks.map((attack): [string, Attack] => [`${attack.kind}: ${attack.name}`, attack]))(
      "%s",
      async (_name, { act, control, effect, allowed, unseen }) => {
        open.reset();
        held.reset();
        const [possible, done] = await Promise.all([control(open), act(held)]);
        expect([...(await damageOf(open, allowed)), ...(possible ?? [])]).toContainEqual(
          expect.stringMatching(effect),
        );
        expect([...(await damageOf(held, allowed)), ...(done ?? [])]).toEqual([]);
        if (unseen === true) expect(askedCalls(held)).toBeEmpty();
        const [, tool = ""] = /^ran (\w+)$/.exec(effect) ?? [];
        if (askedCalls(held).has(tool)) expect(await blockedCalls(held)).toContain(tool);
      },
    );
  });
}
