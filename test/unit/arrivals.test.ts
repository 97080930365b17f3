import { expect, test } from "bun:test";
import { createArrivals } from "../../src/lib/arrivals.ts";

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
