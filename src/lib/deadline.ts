export interface Deadline extends Disposable {
  signal: AbortSignal;
}

/**
 * A signal that goes off with `parent`, or with a TimeoutError after `ms`. Once disposed of it is nobody's burden:
 * what AbortSignal.timeout makes stays in memory until its time has come, however soon the work was done.
 */
export function deadline(parent: AbortSignal, ms: number): Deadline {
  const own = new AbortController();
  const follow = (): void => own.abort(parent.reason);
  const timer = setTimeout(() => own.abort(new DOMException("The operation timed out.", "TimeoutError")), ms);
  timer.unref();
  if (parent.aborted) follow();
  else parent.addEventListener("abort", follow, { once: true });
  return {
    signal: own.signal,
    [Symbol.dispose]() {
      clearTimeout(timer);
      parent.removeEventListener("abort", follow);
    },
  };
}
