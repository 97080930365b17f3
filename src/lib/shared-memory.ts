/** A memory budget that parties reserve from before they allocate. */
export interface SharedMemory {
  /** Reserves bytes until the result is disposed of. Returns undefined where the party may not have that much now. */
  take(party: string, bytes: number): Disposable | undefined;
}

/**
 * Creates a budget. Reservations of at most `small` bytes always succeed. A party's first larger one needs only free
 * space; with more, a party never has more than it leaves free, so that the next party finds some.
 */
export function createSharedMemory({ budget, small }: { budget: number; small: number }): SharedMemory {
  const parties = new Map<string, number>();
  let taken = 0;
  const change = (party: string, bytes: number): void => {
    taken += bytes;
    const own = (parties.get(party) ?? 0) + bytes;
    if (own === 0) parties.delete(party);
    else parties.set(party, own);
  };
  return {
    take(party, bytes) {
      const own = parties.get(party) ?? 0;
      const left = budget - taken - bytes;
      const is_first = own <= small;
      if (bytes > small && (left < 0 || (!is_first && own + bytes > left))) return undefined;
      change(party, bytes);
      let is_given = true;
      return {
        [Symbol.dispose]() {
          if (is_given) change(party, -bytes);
          is_given = false;
        },
      };
    },
  };
}
