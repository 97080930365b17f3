import type { App } from "../app.ts";

/** Larger ones go to the segments: the database would write them twice, to its log and to its file. */
const MAX_INLINE_BYTES = 16 * 1024;

/** The columns that say where the bytes of a mail or of a file are; all null once they have been purged. */
export interface StoredBytes {
  bytes: Uint8Array | null;
  segment: number | null;
  segment_offset: number | null;
}

/** For a row of the open transaction: its commit syncs the bytes first. */
export function storeBytes(app: App, bytes: Uint8Array): StoredBytes {
  if (bytes.byteLength <= MAX_INLINE_BYTES) return { bytes, segment: null, segment_offset: null };
  const { segment, offset } = app.segments.append(bytes);
  return { bytes: null, segment, segment_offset: offset };
}

/** Null when they have been purged. */
export async function readBytes(
  app: App,
  stored: StoredBytes & { size: number },
): Promise<Uint8Array | null> {
  const { bytes, segment, segment_offset: offset, size } = stored;
  if (bytes !== null || segment === null || offset === null) return bytes;
  return app.segments.read({ segment, offset, size });
}
