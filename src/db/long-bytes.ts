import type { Write } from "./group-commit.ts";

/**
 * The most bytes that a row holds. More go to the segments, since the database would write them twice, to its log and
 * to its file.
 */
const MAX_INLINE_BYTES = 16 * 1024;

export function isLong({ byteLength }: Uint8Array): boolean {
  return byteLength > MAX_INLINE_BYTES;
}

/** Writes bytes for a transaction that begins after that (see `SegmentStore.keep`), or leaves them to their rows. */
export type Keep = (long: Uint8Array[]) => Promise<AsyncDisposable | undefined>;

/**
 * Returns a `write` that has the long ones of the bytes that it `stores` on their disk before the transaction begins: all reads wait
 * for an open one.
 */
export function afterLongBytes(write: Write, keep: Keep | undefined): Write {
  if (keep === undefined) return write;
  return async (operation, options) => {
    const long = options?.stores?.filter(isLong) ?? [];
    if (long.length === 0) return write(operation, options);
    await using _kept = await keep(long);
    return await write(operation, options);
  };
}
