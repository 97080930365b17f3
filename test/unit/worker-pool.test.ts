import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../src/errors.ts";
import { isOutOfTasks } from "../../src/lib/own-faults.ts";
import type { Measure } from "../../src/lib/processor-time.ts";
import { createWorkerPool } from "../../src/lib/worker-pool.ts";

const MOODY = "../test/mail/fixtures/moody-worker.ts";
const LIMIT_MS = 5_000;

interface Said {
  said: string;
  born: string;
}

async function refusal(work: Promise<unknown>): Promise<string> {
  return work.then(() => "not refused", messageOf);
}

test("answers every input with its own output, in one worker", async () => {
  await using pool = createWorkerPool<Said>(MOODY);
  const outcomes = await Promise.all(["a", "b", "c"].map((word) => pool.run(word, LIMIT_MS)));
  const said = outcomes.map((outcome) => (outcome.ok ? outcome.output : null));
  expect(said.map((one) => one?.said)).toEqual(["a", "b", "c"]);
  expect(new Set(said.map((one) => one?.born)).size).toBe(1);
});

test("ends a worker that never answers, and loses no other work", async () => {
  await using pool = createWorkerPool<Said>(MOODY);
  const stuck = pool.run("hang", 100);
  const next = pool.run("after", LIMIT_MS);
  expect(await stuck).toEqual({ ok: false, problem: "too_slow" });
  expect(await next).toMatchObject({ ok: true, output: { said: "after" } });
});

describe("of work", () => {
  /** Counts nothing of what is measured, calls `onLook` each time, and names whose use is measured. */
  function noTime(onLook: (looks: number) => void = () => undefined) {
    const pids: number[] = [];
    let looks = 0;
    const measure: Measure = (pid) => {
      pids.push(pid);
      return () => {
        onLook(++looks);
        return 0;
      };
    };
    return { pids, measure };
  }

  test("that the machine gives no time the limit by the clock is not the end", async () => {
    const path = join(tmpdir(), `go-on-${crypto.randomUUID()}`);
    // It is looked at a second time only if it was not given up the first time.
    const { measure } = noTime((looks) => looks === 2 && writeFileSync(path, ""));
    await using pool = createWorkerPool<Said>(MOODY, { measure });
    expect(await pool.run(`until ${path}`, 500)).toMatchObject({ ok: true });
    await rm(path);
  });

  test("that is never given its time the end is another one", async () => {
    await using pool = createWorkerPool<Said>(MOODY, { measure: noTime().measure });
    expect(await pool.run("hang", 10)).toEqual({ ok: false, problem: "held_up" });
  });

  test("the loading does not count", async () => {
    const { pids, measure } = noTime();
    await using pool = createWorkerPool<Said>(MOODY, { measure });
    expect(await pool.run("load", LIMIT_MS)).toMatchObject({ ok: true, output: { said: "load" } });
    // The start of the worker, the input, and the input once more from where it was loaded.
    expect(pids.length).toBe(3);
    expect(new Set(pids).size).toBe(1);
  });
});

test.each(["throw", "exit"])("a worker that dies by %s costs only the input that killed it", async (how) => {
  await using pool = createWorkerPool<Said>(MOODY);
  const [before, dead, after] = await Promise.all(["x", how, "y"].map((word) => pool.run(word, LIMIT_MS)));
  expect(before).toMatchObject({ ok: true, output: { said: "x" } });
  expect(dead).toEqual({ ok: false, problem: "crashed" });
  expect(after).toMatchObject({ ok: true, output: { said: "y" } });
});

test("runs as many inputs at once as it has workers", async () => {
  await using pool = createWorkerPool<Said>(MOODY, { size: 2 });
  const stuck = pool.run("hang", 1_500);
  const order: string[] = [];
  const beside = pool.run("beside", LIMIT_MS).then(() => order.push("beside"));
  await Promise.all([stuck.then(() => order.push("stuck")), beside]);
  expect(order).toEqual(["beside", "stuck"]);
});

test("ends an idle worker and starts another for later work", async () => {
  await using pool = createWorkerPool<Said>(MOODY, { idle_ms: 5 });
  const first = await pool.run("one", LIMIT_MS);
  await Bun.sleep(60);
  const second = await pool.run("two", LIMIT_MS);
  if (!first.ok || !second.ok) throw new Error("both should be answered");
  expect(second.output.born).not.toBe(first.output.born);
});

test("closing waits for the work under way and refuses what is queued or comes later", async () => {
  const pool = createWorkerPool<Said>(MOODY);
  const running = pool.run("running", LIMIT_MS);
  const queued = pool.run("queued", LIMIT_MS);
  const refused = refusal(queued);
  await pool[Symbol.asyncDispose]();
  expect(await running).toMatchObject({ ok: true });
  expect(await refused).toContain("closed");
  expect(await refusal(pool.run("late", LIMIT_MS))).toContain("closed");
});

test("says which worker could not be started, and that no input is to blame for it", async () => {
  await using pool = createWorkerPool<Said>("../test/mail/fixtures/none.ts");
  const error = await pool.run("x", LIMIT_MS).then(
    () => undefined,
    (refused: unknown) => refused,
  );
  expect(messageOf(error)).toContain("none.ts could not be started");
  expect(isOutOfTasks(error)).toBe(true);
});
