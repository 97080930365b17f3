/** Lets any number of callers wait, for a bounded time, until somebody in this process says a name. */
export interface Notifier {
  notify(name: string): void;
  /** Resolves true when `name` was said, false after `ms`. */
  wait(name: string, ms: number): Promise<boolean>;
}

export function createNotifier(): Notifier {
  const waiting = new Map<string, Set<() => void>>();
  return {
    notify(name) {
      for (const tell of waiting.get(name) ?? []) tell();
    },
    wait(name, ms) {
      return new Promise((resolve) => {
        const end = (told: boolean): void => {
          clearTimeout(timer);
          const others = waiting.get(name);
          others?.delete(tell);
          if (others?.size === 0) waiting.delete(name);
          resolve(told);
        };
        const tell = (): void => end(true);
        const timer = setTimeout(() => end(false), ms);
        const others = waiting.get(name) ?? new Set();
        waiting.set(name, others.add(tell));
      });
    },
  };
}
