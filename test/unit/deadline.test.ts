import { expect, test } from "bun:test";
import { messageOf } from "../../src/errors.ts";
import { deadline, unlessAborted } from "../../src/lib/deadline.ts";
import { HOUR_MS } from "../../src/lib/durations.ts";

test("goes off with a TimeoutError when its time has come", async () => {
  using late = deadline(new AbortController().signal, 1);
  await new Promise((resolve) => late.signal.addEventListener("abort", resolve));
  expect((late.signal.reason as Error).name).toBe("TimeoutError");
});

test("goes off with its parent, for the same reason, also when that was before", () => {
  const parent = new AbortController();
  using before = deadline(parent.signal, HOUR_MS);
  expect(before.signal.aborted).toBe(false);
  parent.abort(new Error("stopping"));
  using after = deadline(parent.signal, HOUR_MS);
  for (const { signal } of [before, after]) expect((signal.reason as Error).message).toBe("stopping");
});

test("goes off no more once it is disposed of", async () => {
  const parent = new AbortController();
  const done = deadline(parent.signal, 1);
  const other = deadline(parent.signal, 5);
  done[Symbol.dispose]();
  await new Promise((resolve) => other.signal.addEventListener("abort", resolve));
  parent.abort();
  expect(done.signal.aborted).toBe(false);
});

test("nobody waits for work longer than the signal lets them, and what the work says later harms nobody", async () => {
  const stop = new AbortController();
  const work = Promise.withResolvers<string>();
  const waiting = unlessAborted(work.promise, stop.signal).catch(messageOf);
  stop.abort(new Error("stopping"));
  expect(await waiting).toBe("stopping");
  expect(await unlessAborted(Promise.resolve("late"), stop.signal).catch(messageOf)).toBe("stopping");
  work.reject(new Error("nobody listens"));
  expect(await unlessAborted(Promise.resolve("in time"), new AbortController().signal)).toBe("in time");
});
