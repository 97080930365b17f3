import type { SegmentRange, SegmentStore } from "../../src/lib/segments.ts";

/** Writes bytes as a transaction does that then names all of them. Returns where they lie. */
export async function keepAll(store: SegmentStore, all: Uint8Array[]): Promise<SegmentRange[]> {
  await using _kept = await store.keep(all);
  return all.map((bytes) => {
    const range = store.take(bytes);
    if (range === undefined) throw new Error("it was not kept");
    return range;
  });
}

/** As `keepAll`, for one text. */
export async function keepText(store: SegmentStore, text: string): Promise<SegmentRange> {
  const [range] = await keepAll(store, [Buffer.from(text)]);
  if (range === undefined) throw new Error("it was not kept");
  return range;
}
