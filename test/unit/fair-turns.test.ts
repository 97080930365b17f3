import { expect, test } from "bun:test";
import { createFairTurns } from "../../src/lib/fair-turns.ts";
import { messageOf } from "../../src/errors.ts";

/** Pieces of work that end when they are told to; `begun` in order. */
function desk(size: number) {
  const turns = createFairTurns(size);
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  return {
    begun,
    do: (who: string, name: string, more: { signal?: AbortSignal; strangers?: boolean } = {}) =>
      turns({ who, ...more }, async () => {
        begun.push(name);
        const ended = Promise.withResolvers<void>();
        ends.set(name, ended.resolve);
        await ended.promise;
        return name;
      }),
    async end(name: string) {
      ends.get(name)?.();
      await settled();
    },
  };
}

/** Whatever can go on without anybody else has gone on. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

test("a short piece overtakes the queue of another party", async () => {
  const d = desk(1);
  for (let count = 1; count <= 20; count++) void d.do("slow", `slow ${count}`);
  await settled();
  void d.do("ada", "ada");
  void d.do("bob", "bob");
  await d.end("slow 1");
  await d.end("ada");
  await d.end("bob");
  await d.end("slow 2");
  expect(d.begun).toEqual(["slow 1", "ada", "bob", "slow 2", "slow 3"]);
});

test("one party never has more than half of what is done at once", async () => {
  const d = desk(4);
  for (let count = 1; count <= 5; count++) void d.do("slow", `slow ${count}`);
  await settled();
  expect(d.begun).toEqual(["slow 1", "slow 2"]);
  void d.do("ada", "ada");
  await settled();
  expect(d.begun.at(-1)).toBe("ada");
});

test("what strangers caused waits behind what a party did itself, and has all its turns when that is done", async () => {
  const d = desk(1);
  for (let count = 1; count <= 3; count++) void d.do("ada", `eve ${count}`, { strangers: true });
  await settled();
  for (let count = 1; count <= 2; count++) void d.do("ada", `ada ${count}`);
  void d.do("bob", "bob");
  for (let index = 0; index < 6; index++) await d.end(d.begun[index] ?? "");
  expect(d.begun).toEqual(["eve 1", "bob", "ada 1", "ada 2", "eve 2", "eve 3"]);
});

test("what strangers caused keeps no party from a turn of its own, and the two together no other party", async () => {
  const d = desk(3);
  for (let count = 1; count <= 3; count++) void d.do("ada", `eve ${count}`, { strangers: true });
  await settled();
  expect(d.begun).toEqual(["eve 1"]);
  for (let count = 1; count <= 2; count++) void d.do("ada", `ada ${count}`);
  void d.do("bob", "bob");
  await settled();
  expect(d.begun).toEqual(["eve 1", "ada 1", "bob"]);
  await d.end("eve 1");
  expect(d.begun).toHaveLength(3);
  await d.end("ada 1");
  expect(d.begun.slice(3)).toEqual(["ada 2"]);
});

test("three parties with long queues have their turns one after the other", async () => {
  const d = desk(1);
  for (const who of ["a", "b", "c"])
    for (let count = 1; count <= 3; count++) void d.do(who, `${who}${count}`);
  await settled();
  for (let index = 0; index < 9; index++) await d.end(d.begun[index] ?? "");
  expect(d.begun).toEqual(["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"]);
});

test("who has gone is passed over, and what fails gives its turn back", async () => {
  const d = desk(1);
  const gone = new AbortController();
  const first = d.do("a", "a1");
  const left = d.do("a", "a2", { signal: gone.signal }).catch(messageOf);
  const later = d.do("a", "a3");
  gone.abort(new Error("gone"));
  expect(await left).toBe("gone");
  await d.end("a1");
  expect(await first).toBe("a1");
  expect(d.begun).toEqual(["a1", "a3"]);
  await d.end("a3");
  expect(await later).toBe("a3");
  const turns = createFairTurns(1);
  expect(await turns({ who: "a" }, () => Promise.reject(new Error("no"))).catch(messageOf)).toBe("no");
  expect(await turns({ who: "a" }, async () => "yes")).toBe("yes");
  const aborted = AbortSignal.abort(new Error("too late"));
  expect(await turns({ who: "a", signal: aborted }, async () => "never").catch(messageOf)).toBe("too late");
});
