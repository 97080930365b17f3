const SAVE_EVERY_MS = 60_000;

/** Calls `save`, which never rejects, every minute and once more when it is disposed of; it keeps no process alive. */
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
