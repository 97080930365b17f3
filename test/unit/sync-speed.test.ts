import { expect, test } from "bun:test";
import { createSyncSpeed } from "../../src/db/sync-speed.ts";

function listened() {
  const said: string[] = [];
  const say = (_fields: object, words: string) => void said.push(words);
  return { said, speed: createSyncSpeed({ warn: say, info: say }) };
}

test("a disk is slow when most commits are, is told of once, and once more when it is well", () => {
  const { said, speed } = listened();
  for (let commit = 0; commit < 40; commit++) speed.took(commit % 3 === 0 ? 2_000 : 5);
  expect([said, speed.warning()]).toEqual([[], undefined]);
  for (let commit = 0; commit < 40; commit++) speed.took(210);
  expect(said).toEqual([expect.stringContaining("a commit takes 210 ms")]);
  expect(speed.warning()).toContain("Give the data folder a faster disk");
  for (let commit = 0; commit < 40; commit++) speed.took(5);
  expect(said[1]).toBe("the disk is quick again");
  expect([said.length, speed.warning()]).toEqual([2, undefined]);
});

test("100 ms is no slow disk yet, and more is", () => {
  const { said, speed } = listened();
  for (let commit = 0; commit < 40; commit++) speed.took(100);
  expect(said).toEqual([]);
  for (let commit = 0; commit < 40; commit++) speed.took(101);
  expect(said).toEqual([expect.stringContaining("a commit takes 101 ms")]);
});

test("a few commits at the start say nothing yet", () => {
  const { said, speed } = listened();
  for (let commit = 0; commit < 15; commit++) speed.took(2_000);
  expect([said, speed.warning()]).toEqual([[], undefined]);
});
