import { expect, test } from "bun:test";
import { sharedAnswer } from "../../src/lib/shared-answer.ts";

function counted(ms: number) {
  let asked = 0;
  const ask = sharedAnswer(async () => {
    asked += 1;
    const mine = asked;
    await Bun.sleep(ms);
    return mine;
  });
  return { ask, asked: () => asked };
}

test("all who ask at the same time get one answer, and whoever asks later a new one where that is cheap", async () => {
  const { ask } = counted(1);
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([1, 1, 1]);
  expect(await ask()).toBe(2);
});

test("an answer that took long is handed out for a while", async () => {
  const { ask } = counted(60);
  expect(await ask()).toBe(1);
  await Bun.sleep(100);
  expect(await ask()).toBe(1);
  await Bun.sleep(1_200);
  expect(await ask()).toBe(2);
});

test("an error goes to those who wait, and the next one asks anew", async () => {
  let asked = 0;
  const ask = sharedAnswer(async () => {
    asked += 1;
    await Bun.sleep(asked === 1 ? 30 : 0);
    if (asked === 1) throw new Error("the disk is away");
    return asked;
  });
  const both = await Promise.allSettled([ask(), ask()]);
  expect(both.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await ask()).toBe(2);
});
