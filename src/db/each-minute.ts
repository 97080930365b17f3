const SAVE_EVERY_MS = 60_000;

/**
 * Calls `save`, which must never reject, every minute and once more on disposal. The timer does not keep the process
 * alive.
 */
export function saveEachMinute(save: () => Promise<unknown>): AsyncDisposable {
  const timer = setInterval(() => void save(), SAVE_EVERY_MS);
  timer.unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await save();
    },
  };
}
