import { expect, test } from "bun:test";
import { closestName, nearestNames } from "../../src/lib/closest-name.ts";
import { ownMs } from "../support/own-time.ts";

test.each([
  ["weekyl", ["weekly", "monthly"], "weekly"],
  ["brnad", ["brand", "grand"], "brand"],
  ["abc", ["xyz"], undefined],
  ["a", [], undefined],
  ["größe", ["grösse", "groesse"], "grösse"],
])("%s is taken for a slip of one of %j: %s", (name, names, near) => {
  expect(closestName(name, names)).toBe(near);
});

test("the nearest names come first, and those that begin alike before others", () => {
  expect(nearestNames("gpt-9", ["claude", "gpt-4o", "gpt-4", "o9"], 2)).toEqual(["gpt-4", "gpt-4o"]);
});

test("thousands of names that somebody else lists are compared in no time", () => {
  const names = Array.from({ length: 10_000 }, (_, nth) => `a${nth}`);
  const start = ownMs();
  nearestNames("c".repeat(200), names, 3);
  closestName("c".repeat(200), names);
  expect(ownMs() - start).toBeLessThan(1_000);
});
