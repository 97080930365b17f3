import { expect, test } from "bun:test";
import { createSharedMemory } from "../../src/lib/shared-memory.ts";

const SIZES = { budget: 100, small: 2 };

test("a party with several pieces leaves as much free as it has, and another finds room beside it", () => {
  const memory = createSharedMemory(SIZES);
  const eve = Array.from({ length: 10 }, () => memory.take("eve", 20));
  expect(eve.filter((piece) => piece !== undefined)).toHaveLength(2);
  expect(memory.take("ada", 40)).toBeDefined();
  expect(memory.take("bob", 30)).toBeUndefined();
  expect(memory.take("bob", 20)).toBeDefined();
});

test("what is given back is there again, once", () => {
  const memory = createSharedMemory(SIZES);
  const first = memory.take("eve", 60);
  expect(memory.take("ada", 60)).toBeUndefined();
  first?.[Symbol.dispose]();
  first?.[Symbol.dispose]();
  expect(memory.take("ada", 60)).toBeDefined();
  expect(memory.take("bob", 60)).toBeUndefined();
});

test("small pieces are always given, and count", () => {
  const memory = createSharedMemory(SIZES);
  for (let count = 0; count < 60; count += 1) expect(memory.take(`eve${count}`, 2)).toBeDefined();
  expect(memory.take("ada", 3)).toBeUndefined();
  expect(memory.take("ada", 2)).toBeDefined();
});

test("one that is larger than all of it never has room", () => {
  expect(createSharedMemory(SIZES).take("ada", 101)).toBeUndefined();
});
