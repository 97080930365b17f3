/** Not every turn of the loop: that would take the time of those who are watched. */
const TICK_MS = 5;

/**
 * Milliseconds that this thread has worked so far. What code costs is measured by it, and not by the clock on the
 * wall, on which it also costs what the rest of the machine does meanwhile.
 */
export function ownMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** How long this thread has worked at most, from now until asked, without letting a timer have its turn. */
export function watchThread(): { longestMs: () => number } {
  let last = ownMs();
  let longest = 0;
  const tick = (): void => {
    const now = ownMs();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(tick, TICK_MS);
  return {
    longestMs() {
      tick();
      clearInterval(timer);
      return longest;
    },
  };
}

/**
 * A clock for what this thread does and waits for. It all but stands still while the machine gives the thread no turn,
 * as the clock on the wall then tells more about the machine than about us.
 */
export function startClock(): { ms: () => number } & Disposable {
  let [last, last_own] = [performance.now(), ownMs()];
  let total = 0;
  const tick = (): void => {
    const [now, own] = [performance.now(), ownMs()];
    total += Math.max(own - last_own, Math.min(now - last, TICK_MS));
    [last, last_own] = [now, own];
  };
  const timer = setInterval(tick, TICK_MS);
  return {
    ms() {
      tick();
      return total;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}
