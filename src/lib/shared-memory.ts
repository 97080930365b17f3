/** Memory of which everybody takes a piece before they fill it. */
export interface SharedMemory {
  /** Undefined where there is not so much left for this party; a piece is given back when it is disposed of. */
  take(party: string, bytes: number): Disposable | undefined;
}

/**
 * Pieces of `small` bytes or less are always given. The first piece of a party needs nothing but the room; with more, a
 * party never has more than it leaves free, so that whoever comes next finds some.
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
      const isFirst = own <= small;
      if (bytes > small && (left < 0 || (!isFirst && own + bytes > left))) return undefined;
      change(party, bytes);
      let isGiven = true;
      return {
        [Symbol.dispose]() {
          if (isGiven) change(party, -bytes);
          isGiven = false;
        },
      };
    },
  };
}
