import { timeoutError, waitLimit } from "./wait-limit.ts";

export interface Deadline extends Disposable {
  signal: AbortSignal;
  left_ms: () => number;
}

/**
 * Returns a signal that aborts with `parent`, or with a TimeoutError after `ms`. Disposal frees it at once, whereas an
 * AbortSignal.timeout stays in memory until its time has come.
 */
export function deadline(parent: AbortSignal, ms: number): Deadline {
  const own = new AbortController();
  const follow = (): void => own.abort(parent.reason);
  const due_ms = performance.now() + ms;
  const timer = waitLimit(ms, () => own.abort(timeoutError())).unref();
  if (parent.aborted) follow();
  else parent.addEventListener("abort", follow, { once: true });
  return {
    signal: own.signal,
    left_ms: () => Math.max(0, due_ms - performance.now()),
    [Symbol.dispose]() {
      timer.clear();
      parent.removeEventListener("abort", follow);
    },
  };
}

/** Returns the result of `work`, or throws the signal's reason if that comes first. The work itself goes on. */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([aborted.promise, work]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Resolves when `work` does, or after `ms`. The work itself goes on. */
export async function waitAtMost(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  try {
    await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
