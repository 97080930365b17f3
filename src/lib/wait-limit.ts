/** A timer that fires more than this late was held up: by a long turn of the event loop, or a stopped process. */
const LATE_MS = 50;
/** How long a late timer waits at most for data that has arrived to be read. */
const MAX_GRACE_MS = 2_000;

/** The longest delay that a timer accepts, to switch off the timeouts of libraries. */
export const NEVER_MS = 2 ** 31 - 1;

export interface WaitLimit {
  clear(): void;
  /** Stops the timer from keeping the process alive. */
  unref(): WaitLimit;
}

/**
 * Calls `act` after waiting `ms` for a peer. If the process was stopped or busy, the peer's answer may lie unread in
 * the socket when the timer fires, because timers run first. The limit then waits once more for as long as it was late,
 * two seconds at most.
 */
export function waitLimit(ms: number, act: () => void): WaitLimit {
  const due_ms = performance.now() + ms;
  let keeps_alive = true;
  const fire = (): void => {
    const late_ms = performance.now() - due_ms;
    if (late_ms <= LATE_MS) return act();
    timer = setTimeout(act, Math.min(late_ms, MAX_GRACE_MS));
    if (!keeps_alive) timer.unref();
  };
  let timer = setTimeout(fire, ms);
  return {
    clear: () => clearTimeout(timer),
    unref() {
      keeps_alive = false;
      timer.unref();
      return this;
    },
  };
}

/** Like `AbortSignal.timeout`, but waits for unread answers as `waitLimit` does. */
export function timeoutSignal(ms: number): AbortSignal {
  const own = new AbortController();
  waitLimit(ms, () => own.abort(timeoutError())).unref();
  return own.signal;
}

export function timeoutError(): DOMException {
  return new DOMException("The operation timed out.", "TimeoutError");
}
