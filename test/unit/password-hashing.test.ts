import { afterEach, describe, expect, test } from "bun:test";
import { hasHash } from "../../src/resources/accounts/password-hashing.ts";

const { verify } = Bun.password;
const EVE = "2001:db8:7:1::1";

afterEach(() => void Object.assign(Bun.password, { verify }));

/** Holds all comparisons until it is disposed of, and says which have begun. */
function held() {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const begun: string[] = [];
  let running = 0;
  let most = 0;
  const slow = async (text: string): Promise<boolean> => {
    begun.push(text);
    most = Math.max(most, (running += 1));
    await promise;
    running -= 1;
    return true;
  };
  Object.assign(Bun.password, { verify: slow });
  return { begun, mostAtOnce: () => most, go: () => resolve(true) };
}

describe("comparing passwords, which works on the threads that read files", () => {
  test("is done one at a time, and networks take turns", async () => {
    const { begun, mostAtOnce, go } = held();
    const clients = [EVE, EVE, "2001:db8:7:2::1", EVE, "192.0.2.1"];
    const all = clients.map((client, nth) => hasHash(`${nth} ${client}`, "hash", client));
    go();
    expect(await Promise.all(all)).toEqual(clients.map(() => true));
    expect(mostAtOnce()).toBe(1);
    // The last to come is of another network than all before it.
    expect(begun.slice(0, 2)).toEqual([`0 ${EVE}`, "4 192.0.2.1"]);
  });

  test("is refused where a network has a hundred waiting, and to nobody else", async () => {
    const { go } = held();
    const waiting = Array.from({ length: 100 }, (_, nth) =>
      hasHash("x", "hash", `2001:db8:7:${nth.toString(16)}::1`),
    );
    await expect(hasHash("x", "hash", EVE)).rejects.toMatchObject({
      code: "unavailable",
      extras: { retry_after_seconds: 10 },
    });
    const other = hasHash("x", "hash", "2001:db8:8::1");
    go();
    expect(await other).toBe(true);
    await Promise.all(waiting);
    expect(await hasHash("x", "hash", EVE)).toBe(true);
  });
});
