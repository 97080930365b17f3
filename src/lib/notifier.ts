/** Lets callers wait, for a bounded time, until another part of this process notifies a name. */
export interface Notifier<News = never> {
  notify(name: string, news?: News): void;
  /** Resolves with the news (or true) when `name` is notified, and with false after `ms`. */
  wait(name: string, ms: number): Promise<News | boolean>;
  /** Returns the names that somebody waits for. */
  names(): string[];
  /** Ends every wait, and every later one at once, as if its time were up. */
  close(): void;
}

export function createNotifier<News = never>(): Notifier<News> {
  const waiting = new Map<string, Set<(told: News | boolean) => void>>();
  let closed = false;
  return {
    notify(name, news) {
      for (const end of waiting.get(name) ?? []) end(news ?? true);
    },
    names: () => [...waiting.keys()],
    close() {
      closed = true;
      for (const ends of waiting.values()) for (const end of ends) end(false);
    },
    wait(name, ms) {
      if (closed) return Promise.resolve(false);
      return new Promise((resolve) => {
        const end = (told: News | boolean): void => {
          clearTimeout(timer);
          const others = waiting.get(name);
          others?.delete(end);
          if (others?.size === 0) waiting.delete(name);
          resolve(told);
        };
        const timer = setTimeout(() => end(false), ms);
        const others = waiting.get(name) ?? new Set();
        waiting.set(name, others.add(end));
      });
    },
  };
}
