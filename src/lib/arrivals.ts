/** One of several byte streams that are read into memory at the same time. */
export interface Arrival extends Disposable {
  /** It was the largest when memory ran out, and holds nothing any more. */
  readonly dropped: boolean;
  keep(chunk: Uint8Array): void;
  drop(): void;
  /** All of it; nothing is held of it from then on. */
  take(): Buffer;
}

interface Held {
  chunks: Uint8Array[];
  bytes: number;
  dropped: boolean;
}

/**
 * Together they hold no more than `budget` bytes; the largest has to go first. What has come counts, not what was
 * announced: nobody takes the room of others by a promise.
 */
export function createArrivals(budget: number): () => Arrival {
  const all = new Set<Held>();
  let held = 0;
  const empty = (one: Held): void => {
    held -= one.bytes;
    Object.assign(one, { chunks: [], bytes: 0 });
  };
  const drop = (one: Held): void => {
    empty(one);
    one.dropped = true;
  };
  return () => {
    const own: Held = { chunks: [], bytes: 0, dropped: false };
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
        if (held > budget) drop([...all].reduce((most, other) => (other.bytes > most.bytes ? other : most)));
      },
      drop: () => drop(own),
      take() {
        const { chunks } = own;
        empty(own);
        return Buffer.concat(chunks);
      },
      [Symbol.dispose]() {
        all.delete(own);
        drop(own);
      },
    };
  };
}
