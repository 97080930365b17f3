/** How long it is known that there was news, for a listener that comes late. */
const RECENT_MS = 15_000;

/** Publishes news under a name to listeners in this process; see `Notifier` for waiting once. */
export interface Feed {
  /** Returns the number of listeners to `name`. */
  listeners(name: string): number;
  /** Returns the number of all listeners. */
  total(): number;
  tell(name: string, news: string): void;
  /** Returns how many seconds ago there was news at the latest, which nobody may have heard; undefined beyond 15. */
  toldBefore(name: string): number | undefined;
  /**
   * Calls `hear` with all news from now on, and with null when the feed closes. Returns a function that ends the
   * subscription.
   */
  listen(name: string, hear: (news: string | null) => void): () => void;
  /** Ends all subscriptions, and every later one at once. */
  close(): void;
}

/** `now` is in milliseconds and does not leap. */
export function createFeed(now: () => number): Feed {
  /** When there was news last, by name; the oldest first. */
  const told = new Map<string, number>();
  const forgetOld = (): void => {
    const since = now() - RECENT_MS;
    for (const [name, at] of told) {
      if (at > since) return;
      told.delete(name);
    }
  };
  const listening = new Map<string, Set<(news: string | null) => void>>();
  let total = 0;
  let closed = false;
  return {
    listeners: (name) => listening.get(name)?.size ?? 0,
    total: () => total,
    tell(name, news) {
      forgetOld();
      told.delete(name);
      told.set(name, now());
      for (const hear of listening.get(name) ?? []) hear(news);
    },
    toldBefore(name) {
      forgetOld();
      const at = told.get(name);
      return at === undefined ? undefined : Math.max(0, now() - at) / 1_000;
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
