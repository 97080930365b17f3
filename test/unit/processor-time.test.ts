import { expect, test } from "bun:test";
import { readlinkSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ownMs, processorTime } from "../../src/lib/processor-time.ts";
import { createWorkerPool } from "../../src/lib/worker-pool.ts";

const BURNT_MS = 200;

/** Keeps this thread busy until the processor has given it so much time. */
function burn(): void {
  const until_ms = ownMs() + BURNT_MS;
  while (ownMs() < until_ms) Bun.hash("x");
}

test("the time of a thread is its own, that of a busy one beside it left out", async () => {
  const here = processorTime(
    process.platform === "linux" ? `/proc/${readlinkSync("/proc/thread-self")}` : "",
  );
  const used: number[] = [];
  await using pool = createWorkerPool<unknown>("../test/mail/fixtures/moody-worker.ts", {
    measure(task) {
      const there = processorTime(task);
      if (task) burn();
      if (task) used.push(there());
      return () => 0;
    },
  });
  await pool.run("a", 60_000);
  // The kernel counts in ticks.
  expect(here()).toBeGreaterThan(BURNT_MS * 0.8);
  const own = used[0] ?? 0;
  if (process.platform === "linux") expect(own).toBeLessThan(BURNT_MS / 2);
});

test("where the system does not tell that of a thread, that of the process counts", async () => {
  const uncounted = await mkdtemp(join(tmpdir(), "processor-time-"));
  await writeFile(join(uncounted, "schedstat"), "0 0 0\n");
  for (const task of ["", "/proc/0/task/0", uncounted, undefined]) {
    const used = processorTime(task);
    burn();
    expect(used()).toBeGreaterThan(BURNT_MS * 0.8);
  }
  await rm(uncounted, { recursive: true });
});
