/** Publishes news under a name to listeners in this process; see `Notifier` for waiting once. */
export interface Feed {
  /** Returns the number of listeners to `name`. */
  listeners(name: string): number;
  /** Returns the number of all listeners. */
  total(): number;
  tell(name: string, news: string): void;
  /**
   * Calls `hear` with all news from now on, and with null when the feed closes. Returns a function that ends the
   * subscription.
   */
  listen(name: string, hear: (news: string | null) => void): () => void;
  /** Ends all subscriptions, and every later one at once. */
  close(): void;
}

export function createFeed(): Feed {
  const listening = new Map<string, Set<(news: string | null) => void>>();
  let total = 0;
  let closed = false;
  return {
    listeners: (name) => listening.get(name)?.size ?? 0,
    total: () => total,
    tell(name, news) {
      for (const hear of listening.get(name) ?? []) hear(news);
    },
    listen(name, hear) {
      if (closed) {
        hear(null);
        return () => undefined;
      }
      const all = listening.get(name) ?? new Set();
      listening.set(name, all.add(hear));
      total += 1;
      return () => {
        if (!all.delete(hear)) return;
        total -= 1;
        if (all.size === 0) listening.delete(name);
      };
    },
    close() {
      closed = true;
      for (const all of listening.values()) for (const hear of all) hear(null);
    },
  };
}
