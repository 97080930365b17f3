import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Measure } from "../../src/lib/processor-time.ts";
import { createWorkerPool, type WorkerPool } from "../../src/lib/worker-pool.ts";
import { until } from "../support/until.ts";

const MOODY = "../test/mail/fixtures/moody-worker.ts";
const LIMIT_MS = 20_000;

interface Said {
  said: string;
  born: string;
}

/** A pool of one worker, and the process that it last had. */
function oneWorker(limits: { memory_bytes?: number } = {}): {
  pool: WorkerPool<Said>;
  pid: () => number;
} {
  let last = 0;
  const measure: Measure = (pid) => {
    last = pid;
    const began = performance.now();
    return () => performance.now() - began;
  };
  return { pool: createWorkerPool<Said>(MOODY, { measure, ...limits }), pid: () => last };
}

/** Whether a process runs: one that nobody has waited for yet does not. */
function runs(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
}

async function outputOf(pool: WorkerPool<Said>, input: string): Promise<Said> {
  const outcome = await pool.run(input, LIMIT_MS);
  if (!outcome.ok) throw new Error(outcome.problem);
  return outcome.output;
}

test("a worker is ended in the middle of a pattern, where no thread can be", async () => {
  const { pool, pid } = oneWorker();
  await using _pool = pool;
  expect(await pool.run("pattern", 200)).toEqual({ ok: false, problem: "too_slow" });
  const stuck = pid();
  await until(() => !runs(stuck));
  expect(await outputOf(pool, "after")).toMatchObject({ said: "after" });
});

test("a worker that computes ends when the server is killed", async () => {
  const server = Bun.spawn([process.execPath, join(import.meta.dir, "../mail/fixtures/starts-worker.ts")], {
    stdout: "pipe",
  });
  const { value } = await server.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  expect(runs(pid)).toBe(true);
  server.kill("SIGKILL");
  await server.exited;
  await until(() => !runs(pid));
});

test("a signal to the whole terminal or service ends no worker that the server still needs", async () => {
  const { pool, pid } = oneWorker();
  await using _pool = pool;
  const { born } = await outputOf(pool, "before");
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.kill(pid(), signal);
  expect(await outputOf(pool, "after")).toEqual({ said: "after", born });
});

test("a worker that the system kills, as memory is short, is not to blame, and the next input is worked on", async () => {
  const { pool, pid } = oneWorker();
  await using _pool = pool;
  await outputOf(pool, "before");
  const [hanging, next] = [pool.run("hang", LIMIT_MS), pool.run("next", LIMIT_MS)];
  process.kill(pid(), "SIGKILL");
  expect(await hanging).toEqual({ ok: false, problem: "held_up" });
  expect(await next).toMatchObject({ ok: true, output: { said: "next" } });
});

test("a worker has nothing of the server's environment, where its secrets may be", async () => {
  process.env["MAILWRIGHT_TEST_SECRET"] = "x";
  const { pool } = oneWorker();
  await using _pool = pool;
  const { said } = await outputOf(pool, "environment");
  delete process.env["MAILWRIGHT_TEST_SECRET"];
  expect(said.split(" ").filter((name) => !/^(?:BUN|NODE|TMPDIR|TZ)/.test(name))).toEqual([]);
});

test.skipIf(process.platform !== "linux")(
  "where memory is short the system ends a worker before the server",
  async () => {
    const { pool, pid } = oneWorker();
    await using _pool = pool;
    await outputOf(pool, "x");
    expect(readFileSync(`/proc/${pid()}/oom_score_adj`, "utf8")).toBe("1000\n");
  },
);

test("a worker that says what is no message is ended, and nothing else", async () => {
  const { pool } = oneWorker();
  await using _pool = pool;
  expect(await pool.run("nonsense", LIMIT_MS)).toEqual({ ok: false, problem: "crashed" });
  expect(await outputOf(pool, "after")).toMatchObject({ said: "after" });
});

test("what cannot be sent is an error, and the worker is free again", async () => {
  const { pool } = oneWorker();
  await using _pool = pool;
  const told = await pool.run({ no: () => undefined }, LIMIT_MS).then(() => "sent", String);
  expect(told).toContain("DataCloneError");
  expect(await outputOf(pool, "after")).toMatchObject({ said: "after" });
});
