import { expect, test } from "bun:test";
import { createArrivals } from "../../src/net/arrivals.ts";

const BUDGET = 100;

function arriving(sizes: [party: string, bytes: number][]) {
  const begin = createArrivals(BUDGET);
  const mails = sizes.map(([party, bytes]) => {
    const arrival = begin(party);
    arrival.keep(new Uint8Array(bytes));
    return { party, bytes, arrival };
  });
  return mails.filter(({ arrival }) => arrival.dropped).map(({ party, bytes }) => [party, bytes]);
}

test("whoever holds the most in total gives way to a newcomer, however small each of theirs is", () => {
  const crowd = Array.from({ length: 10 }, (_one, at): [string, number] => ["crowd", at === 4 ? 12 : 9]);
  expect(arriving([...crowd, ["newcomer", 20]])).toEqual([
    ["crowd", 9],
    ["crowd", 12],
  ]);
});

test("among equals the largest goes, and nothing while there is room", () => {
  expect(
    arriving([
      ["a", 20],
      ["b", 50],
      ["c", 31],
    ]),
  ).toEqual([["b", 50]]);
  expect(
    arriving([
      ["a", 20],
      ["b", 50],
      ["c", 30],
    ]),
  ).toEqual([]);
});

test("what is being worked on counts until that has ended, and never has to go", () => {
  const begin = createArrivals(BUDGET);
  const first = begin("a");
  first.keep(new Uint8Array(60));
  expect(first.take()).toHaveLength(60);
  const second = begin("a");
  second.keep(new Uint8Array(30));
  const other = begin("b");
  other.keep(new Uint8Array(20));
  expect([first.dropped, second.dropped, other.dropped]).toEqual([false, true, false]);
  const large = begin("c");
  large.keep(new Uint8Array(50));
  expect([first.dropped, large.dropped, other.dropped]).toEqual([false, true, false]);
  first[Symbol.dispose]();
  const last = begin("c");
  last.keep(new Uint8Array(80));
  expect([last.dropped, other.dropped]).toEqual([false, false]);
});
