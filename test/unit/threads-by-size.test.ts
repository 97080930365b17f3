import { expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createThreadsBySize } from "../../src/lib/threads-by-size.ts";

const PATIENT = "../test/mail/fixtures/patient-worker.ts";
const LARGE = 262_145;

interface Said {
  said: string;
  born: string;
}

/** Threads that may be silent for a minute, and a word that holds one until `release` is called. */
async function held() {
  const dir = await mkdtemp(join(tmpdir(), "held-"));
  const file = join(dir, "release");
  const threads = createThreadsBySize<string, Said>(PATIENT, { ask_ms: 7_500 });
  const begun: string[] = [];
  const order: string[] = [];
  const release = () => Bun.write(file, "");
  return {
    begun,
    order,
    hold: ` until ${file}`,
    release,
    async run(who: string, bytes: number, input: string) {
      const outcome = await threads.run({ who, bytes }, () => {
        begun.push(who);
        return { input, transfer: [] };
      });
      if (!outcome.ok) throw new Error(outcome.problem);
      order.push(`${who} ${bytes < LARGE ? "small" : "large"}`);
      return outcome.output.born;
    },
    async [Symbol.asyncDispose]() {
      await release();
      await threads[Symbol.asyncDispose]();
      await rm(dir, { recursive: true });
    },
  };
}

test("large inputs of one network hold up its own alone: those of others and all small ones are answered", async () => {
  await using on = await held();
  const eve = Array.from({ length: 5 }, () => on.run("eve", LARGE, on.hold));
  await on.run("ada", LARGE, "a");
  await on.run("ada", LARGE, "b");
  await on.run("ada", LARGE - 1, "c");
  await on.run("eve", LARGE - 1, "d");
  expect(on.order).toEqual(["ada large", "ada large", "ada small", "eve small"]);
  await on.release();
  expect(new Set(await Promise.all(eve)).size).toBe(2);
});

test("where several networks fill all threads, each of them is served before any is twice", async () => {
  await using on = await held();
  const all = [
    ...Array.from({ length: 4 }, () => on.run("eve", LARGE, on.hold)),
    ...Array.from({ length: 4 }, () => on.run("mal", LARGE, on.hold)),
    on.run("ada", LARGE, "a"),
  ];
  await on.run("bob", LARGE - 1, "b");
  expect(on.begun.toSorted()).toEqual(["bob", "eve", "eve", "mal", "mal"]);
  expect(on.order).toEqual(["bob small"]);
  await on.release();
  await Promise.all(all);
  expect(on.begun[5]).toBe("ada");
});

test("small inputs share a thread, and each large one that is worked on has its own", async () => {
  await using on = await held();
  const small = await Promise.all(["a", "b", "c"].map((word) => on.run(word, LARGE - 1, "100")));
  const large = await Promise.all(["a", "b", "c"].map((word) => on.run(word, LARGE, "100")));
  expect([new Set(small).size, new Set(large).size, new Set([...small, ...large]).size]).toEqual([1, 3, 4]);
  const again = await on.run("a", LARGE, "100");
  expect(large).toContain(again);
});
