/** Tells whoever listens to a name, in this process and for as long as they like; see `Notifier` for those who wait once. */
export interface Feed {
  /** How many listen to `name`. */
  listeners(name: string): number;
  /** How many listen at all. */
  total(): number;
  tell(name: string, news: string): void;
  /** `hear` gets all that is told from now on, and null once it is over; what is given ends the listening. */
  listen(name: string, hear: (news: string | null) => void): () => void;
  /** Ends all listening, and each later one at once. */
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
