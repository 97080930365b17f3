import type { App } from "../app.ts";
import { rangesOf } from "../lib/segments.ts";

/** Larger ones go to the segments: the database would write them twice, to its log and to its file. */
const MAX_INLINE_BYTES = 16 * 1024;

/** The columns that say where the bytes of a mail or of a file are; all null once they have been purged. */
export interface StoredBytes {
  bytes: Uint8Array | null;
  segment: number | null;
  segment_offset: number | null;
}

/** Of what was purged, or never kept. */
export const NO_BYTES: StoredBytes = { bytes: null, segment: null, segment_offset: null };

/** For a row of the open transaction: its commit syncs the bytes first. */
export function storeBytes(app: App, bytes: Uint8Array): StoredBytes {
  if (bytes.byteLength <= MAX_INLINE_BYTES) return { ...NO_BYTES, bytes };
  const { segment, offset } = app.segments.append(bytes);
  return { bytes: null, segment, segment_offset: offset };
}

/** Null when they have been purged. */
export async function readBytes(
  app: App,
  stored: StoredBytes & { size: number },
): Promise<Uint8Array | null> {
  const [range] = rangesOf(stored);
  return stored.bytes !== null || !range ? stored.bytes : app.segments.read(range);
}
