import type { App } from "../app.ts";
import type { Db } from "../db/database.ts";
import type { Keeper } from "../db/segment-rows.ts";
import { AppError } from "../errors.ts";
import { rangesOf } from "../lib/segments.ts";

/** Larger ones go to the segments: the database would write them twice, to its log and to its file. */
const MAX_INLINE_BYTES = 16 * 1024;
/** Bits that a number has for a whole one, in the program and in the database. */
const CHECKSUM_BITS = 53;

/** The columns that say where the bytes of a mail or of a file are; all null once they have been purged. */
export interface StoredBytes {
  bytes: Uint8Array | null;
  segment: number | null;
  segment_offset: number | null;
  checksum: number | null;
  lost_at: number | null;
}

/** What is to be known of a row to read its bytes. */
export interface Kept extends StoredBytes {
  id: string;
  size: number;
  /** Of a file. */
  filename?: string;
}

/** The columns of `Kept`. */
export const KEPT = [
  "id",
  "bytes",
  "segment",
  "segment_offset",
  "size",
  "checksum",
  "lost_at",
] as const satisfies (keyof Kept)[];

/** Of what was purged, or never kept. */
export const NO_BYTES: StoredBytes = {
  bytes: null,
  segment: null,
  segment_offset: null,
  checksum: null,
  lost_at: null,
};

/** For the row `id` of the open transaction: its commit syncs the bytes first. */
export function storeBytes(app: App, id: string, bytes: Uint8Array): StoredBytes {
  if (bytes.byteLength <= MAX_INLINE_BYTES) return { ...NO_BYTES, bytes };
  const { segment, offset } = app.segments.append(bytes);
  return { ...NO_BYTES, segment, segment_offset: offset, checksum: checksumOf(id, bytes) };
}

/**
 * Null when they have been purged. Throws `content_lost` when the bytes are missing in the segments, or others are at
 * their place; that is noted on the row, and taken back should they be there again. Not in a transaction.
 */
export async function readBytes(app: App, keeper: Keeper, row: Kept): Promise<Uint8Array | null> {
  let known: Kept | undefined = row;
  while (known) {
    const [range] = rangesOf(known);
    if (known.bytes !== null || !range) return known.bytes;
    const found = await app.segments.read(range);
    if (found && isOwn(known, found)) {
      if (known.lost_at !== null) await note(app, keeper, known, null);
      return found;
    }
    // While it was read the row may have been purged, or its bytes moved.
    const now = await rowOf(app.db, keeper, known.id);
    if (now && isSamePlace(known, now)) {
      if (now.lost_at === null) await tellLost(app, keeper, now);
      throw contentLost(known.filename);
    }
    known = now;
  }
  return null;
}

/** Of a file, or of a mail as it came in. */
export function contentLost(filename?: string): AppError {
  const what = filename === undefined ? "The mail as it came in" : `The content of ${filename}`;
  return new AppError("content_lost", `${what} is missing on the disk of this server.`, {
    fix: "Send it again.",
  });
}

export function isLost(error: unknown): error is AppError {
  return error instanceof AppError && error.code === "content_lost";
}

/** Of the bytes of a row, which are nobody else's: not against malice, but cheap for every mail. */
function checksumOf(id: string, bytes: Uint8Array): number {
  return Number(BigInt.asUintN(CHECKSUM_BITS, Bun.hash.xxHash64(bytes, Bun.hash.xxHash64(id))));
}

/** Earlier versions kept no checksum: of those it can be told only when nothing but zeros is there. */
function isOwn({ id, checksum }: Kept, bytes: Uint8Array): boolean {
  return checksum === null ? bytes.some((byte) => byte !== 0) : checksum === checksumOf(id, bytes);
}

function isSamePlace(one: Kept, other: Kept): boolean {
  return one.segment === other.segment && one.segment_offset === other.segment_offset;
}

async function tellLost(app: App, keeper: Keeper, row: Kept): Promise<void> {
  const { segment, segment_offset: offset, size } = row;
  app.log.error(
    { kept_in: keeper, id: row.id, segment, offset, size },
    "bytes of a mail or file are missing, or not what was stored",
  );
  await note(app, keeper, row, app.now());
}

async function note(app: App, keeper: Keeper, row: Kept, lost_at: number | null): Promise<void> {
  await app.write((tx) =>
    tx
      .updateTable(keeper)
      .set({ lost_at })
      .where("id", "=", row.id)
      .where("segment", "=", row.segment)
      .where("segment_offset", "=", row.segment_offset)
      .execute(),
  );
}

function rowOf(db: Db, keeper: Keeper, id: string): Promise<Kept | undefined> {
  return db.selectFrom(keeper).select(KEPT).where("id", "=", id).executeTakeFirst();
}
