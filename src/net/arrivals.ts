/** One of several byte streams that are read into memory at the same time. */
export interface Arrival extends Disposable {
  /** Whether it was dropped when memory ran out, and holds nothing any more. */
  readonly dropped: boolean;
  keep(chunk: Uint8Array): void;
  drop(): void;
  /** Returns all bytes. They count until this arrival is disposed of, and it cannot be dropped any more. */
  take(): Buffer;
}

interface Held {
  party: string;
  chunks: Uint8Array[];
  bytes: number;
  dropped: boolean;
  taken: boolean;
}

/**
 * Creates byte streams that together hold no more than `budget` bytes. When there is no more room, the party that holds
 * the most loses its largest, so that nobody keeps others out by many that are each slightly smaller. Only received
 * bytes count, not announced ones: nobody reserves room by a promise.
 */
export function createArrivals(budget: number): (party: string) => Arrival {
  const all = new Set<Held>();
  let held = 0;
  const isOver = (): boolean => held > budget;
  const empty = (one: Held): void => {
    held -= one.bytes;
    Object.assign(one, { chunks: [], bytes: 0 });
  };
  const drop = (one: Held): void => {
    empty(one);
    one.dropped = true;
  };
  const largestOfTheLargest = (): Held => {
    const parties = [...Map.groupBy(all, ({ party }) => party).values()].filter((some) => some.some(mayGo));
    const bytesOf = (some: Held[]): number => some.reduce((sum, { bytes }) => sum + bytes, 0);
    const most = parties.reduce((one, other) => (bytesOf(other) > bytesOf(one) ? other : one));
    return most.filter(mayGo).reduce((one, other) => (other.bytes > one.bytes ? other : one));
  };
  return (party) => {
    const own: Held = { party, chunks: [], bytes: 0, dropped: false, taken: false };
    all.add(own);
    return {
      get dropped() {
        return own.dropped;
      },
      keep(chunk) {
        if (own.dropped) return;
        own.chunks.push(chunk);
        own.bytes += chunk.byteLength;
        held += chunk.byteLength;
        while (isOver()) drop(largestOfTheLargest());
      },
      drop: () => drop(own),
      take() {
        const { chunks } = own;
        Object.assign(own, { chunks: [], taken: true });
        return Buffer.concat(chunks);
      },
      [Symbol.dispose]() {
        all.delete(own);
        drop(own);
      },
    };
  };
}

/** Returns whether a stream may be dropped for others: not while it is worked on, nor when it holds nothing. */
function mayGo({ bytes, taken }: Held): boolean {
  return !taken && bytes > 0;
}
