/** A timer that fires later than this was held up: by a long turn of the event loop, or a process that stood still. */
const LATE_MS = 50;
/** How long a late timer waits for what has come in meanwhile to be read. */
const MAX_GRACE_MS = 2_000;

/** The longest time that a timer takes: for libraries whose own clock is less patient. */
export const NEVER_MS = 2 ** 31 - 1;

export interface WaitLimit {
  clear(): void;
  /** It keeps no process alive any more. */
  unref(): WaitLimit;
}

/**
 * Calls `act` once somebody else has been waited for `ms` long. After a time in which nothing was read, because the process
 * was stopped or busy, what they said may lie unread in the socket, and timers fire first: the limit then waits once
 * more for as long as it was late, two seconds at most.
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

/** As `AbortSignal.timeout`, with the patience of `waitLimit`. */
export function timeoutSignal(ms: number): AbortSignal {
  const own = new AbortController();
  waitLimit(ms, () => own.abort(timeoutError())).unref();
  return own.signal;
}

export function timeoutError(): DOMException {
  return new DOMException("The operation timed out.", "TimeoutError");
}
