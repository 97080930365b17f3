import { expect, test } from "bun:test";
import { until } from "../support/until.ts";
import { ownMs, passedTime, processorTime } from "../../src/lib/processor-time.ts";

const BURNT_MS = 200;

/** Keeps this thread busy until the processor has given it so much time. */
function burn(): void {
  const until_ms = ownMs() + BURNT_MS;
  while (ownMs() < until_ms) Bun.hash("x");
}

test("the time of a process is its own, that of a busy one beside it left out", async () => {
  await using child = Bun.spawn(["sleep", "60"]);
  const [here, there] = [processorTime(process.pid), processorTime(child.pid)];
  burn();
  // The kernel counts in ticks.
  expect(here()).toBeGreaterThan(BURNT_MS * 0.8);
  if (process.platform === "linux") expect(there()).toBeLessThan(BURNT_MS / 2);
});

test.skipIf(process.platform !== "linux")("what works beside the main thread counts too", async () => {
  const busy = "for (;;) {}";
  const program = `new Worker("data:text/javascript,${busy}"); setInterval(() => {}, 1_000);`;
  await using child = Bun.spawn([process.execPath, "-e", program]);
  const used = processorTime(child.pid);
  await until(() => used() > 1_000);
});

test("where the system does not tell, the clock counts", () => {
  const none = 0;
  for (const used of [processorTime(none), passedTime(none)]) {
    burn();
    expect(used()).toBeGreaterThan(BURNT_MS * 0.8);
  }
});
