import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import type { Keeper } from "../../db/segment-rows.ts";
import { AppError } from "../../errors.ts";
import { rangesOf, type SegmentRange } from "../../lib/segments.ts";
import { isUnreadable, wasRead } from "./unreadable.ts";
import { HOUR_SECONDS } from "../../lib/durations.ts";

/** Bits of a checksum: as many as an integer has in a number of JavaScript. */
const CHECKSUM_BITS = 53;
/**
 * How long missing bytes may come back: within an hour a disk that was not mounted, or a copy that lags, has been
 * noticed.
 */
const MISSING_SECONDS = HOUR_SECONDS;

/** The columns that say where the bytes of a mail or of a file are; all null once they have been purged. */
export interface StoredBytes {
  bytes: Uint8Array | null;
  segment: number | null;
  segment_offset: number | null;
  checksum: number | null;
  lost_at: number | null;
}

/** What has to be known of a row to read its bytes. */
export interface Kept extends StoredBytes {
  id: string;
  size: number;
  /** The name of a file; a mail has none. */
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

/** The columns of bytes that were purged, or never kept. */
export const NO_BYTES: StoredBytes = {
  bytes: null,
  segment: null,
  segment_offset: null,
  checksum: null,
  lost_at: null,
};

/**
 * Returns the columns of bytes for the row `id` of the open transaction: where they lie if it was begun with them
 * (`stores` of a write), and else the bytes themselves, as with a command line beside a server, which alone writes the segments.
 */
export function storeBytes(app: App, id: string, bytes: Uint8Array): StoredBytes {
  const range = app.segments.take(bytes);
  if (range === undefined) return { ...NO_BYTES, bytes };
  const { segment, offset } = range;
  return { ...NO_BYTES, segment, segment_offset: offset, checksum: checksumOf(id, bytes) };
}

/**
 * Reads the bytes of a row; null when they have been purged. Throws `content_lost` when the bytes are missing in the
 * segments, others are in their place, or the disk has failed to read them for an hour in which it read others. That
 * is noted on the row; the note is taken back if they are there again. Not to be called in a transaction.
 */
export async function readBytes(app: App, keeper: Keeper, row: Kept): Promise<Uint8Array | null> {
  return (await readKept(app, keeper, row))?.bytes ?? null;
}

/**
 * As `readBytes`, for a body that is sent to `who`, a user's id. Long bytes are checked first, then read again as
 * fast as they are taken, so that a slow reader holds no memory; they are not erased for ten minutes.
 */
export async function bodyOf(
  app: App,
  keeper: Keeper,
  { row, who }: { row: Kept; who: string },
): Promise<Uint8Array | Blob | null> {
  if (rangesOf(row).length === 0) return row.bytes;
  const kept = await app.checks({ who }, () => checkKept(app, keeper, row));
  const [range] = kept ? rangesOf(kept) : [];
  if (!kept || !range) return kept?.bytes ?? null;
  app.lent.lend(range);
  // The loan holds if the row still names the same place: whoever erases bytes asks first what is lent.
  const now = await rowOf(app.db, keeper, row.id);
  if (now && isSamePlace(kept, now)) return app.segments.fileOf(range);
  return now ? bodyOf(app, keeper, { row: now, who }) : null;
}

/** As `readBytes`, but returns the row, once its bytes were found to be its own. */
async function checkKept(app: App, keeper: Keeper, row: Kept): Promise<Kept | null> {
  const found = await readKept(app, keeper, row);
  // Given back at once: the garbage collector would take its time, while others wait to read as much.
  if (found?.row.bytes === null) (found.bytes.buffer as ArrayBuffer).transfer(0);
  return found?.row ?? null;
}

/** The bytes, with the row as it is when they are read: they may have been moved meanwhile. */
async function readKept(
  app: App,
  keeper: Keeper,
  row: Kept,
): Promise<{ bytes: Uint8Array; row: Kept } | null> {
  let known: Kept | undefined = row;
  while (known) {
    const [range] = rangesOf(known);
    if (known.bytes !== null) return { bytes: known.bytes, row: known };
    if (!range) return null;
    const found = await readUnlessLost(app, keeper, { ...known, range });
    if (typeof found !== "string" && isOwn(known, found)) {
      if (known.lost_at !== null) await note(app, keeper, known, null);
      return { bytes: found, row: known };
    }
    // While it was read the row may have been purged, or its bytes moved.
    const now = await rowOf(app.db, keeper, known.id);
    if (now && isSamePlace(known, now)) {
      const since = now.lost_at ?? (await tellLost(app, keeper, now));
      throw contentLost(known.filename, found === "missing" ? since : null);
    }
    known = now;
  }
  return null;
}

/**
 * Reads bytes in the segments. `missing`: their file is gone, or ends before them. `unreadable`: the disk cannot read
 * the place they are at.
 */
async function readUnlessLost(
  app: App,
  keeper: Keeper,
  { id, lost_at, range }: Pick<Kept, "id" | "lost_at"> & { range: SegmentRange },
): Promise<Uint8Array | "missing" | "unreadable"> {
  try {
    const found = await app.segments.read(range);
    wasRead(app, keeper, id);
    return found ?? "missing";
  } catch (error) {
    const failed = { id, kept_in: "segments" as const, error };
    const canRead = async (other: string): Promise<boolean> => {
      const row = await rowOf(app.db, keeper, other);
      const [place] = row === undefined ? [] : rangesOf(row);
      return place !== undefined && (await app.segments.read(place)) !== null;
    };
    if (lost_at !== null || (await isUnreadable(app, keeper, failed, canRead))) return "unreadable";
    throw error;
  }
}

/**
 * Whether `error` means that the row of a mail, or of a call's files, cannot be read any more (see `isUnreadable`).
 * For bytes in the segments, `readBytes` tells.
 */
export function isRowUnreadable(
  app: App,
  { id, raw_mail_id }: { id: string; raw_mail_id: string | null },
  error: unknown,
): Promise<boolean> {
  const keeper = raw_mail_id === null ? "attachments" : "raw_mails";
  const failed = { id: raw_mail_id ?? id, kept_in: "rows" as const, error };
  return isUnreadable(
    app,
    keeper,
    failed,
    async (other) => (await rowOf(app.db, keeper, other)) !== undefined,
  );
}

class LostError extends AppError {
  /**
   * Since when the bytes are missing and may come back, in unix seconds; null where wrong or unreadable bytes are in
   * their place.
   */
  readonly missing_since: number | null;
  /** Whether the rows themselves are missing, so that the loss cannot be noted on them. */
  readonly of_rows: boolean;

  constructor(what: string, missing_since: number | null, of_rows = false) {
    super("content_lost", `${what} is missing on the disk of this server.`, { fix: "Send it again." });
    this.missing_since = missing_since;
    this.of_rows = of_rows;
  }
}

/** Returns the error for a file, or for a mail as it came in, whose bytes are gone. */
export function contentLost(filename?: string, missing_since: number | null = null): LostError {
  return new LostError(
    filename === undefined ? "The mail as it came in" : `The content of ${filename}`,
    missing_since,
  );
}

/** Returns the error for a call some of whose rows are gone, or are those of another one. */
export function rowsLost(): LostError {
  return new LostError("What the call came with", null, true);
}

export function isLost(error: unknown): error is LostError {
  return error instanceof LostError;
}

/** Whether it makes sense to wait for the bytes: they have been missing for less than an hour. */
export function mayComeBack({ calmNow }: App, { missing_since }: LostError): boolean {
  return missing_since !== null && calmNow() - missing_since < MISSING_SECONDS;
}

/**
 * Returns a checksum of bytes and the id of their row, so that the same bytes of another row have another one. It is
 * no defence against malice, but cheap for every mail.
 */
export function checksumOf(id: string, bytes: Uint8Array): number {
  return Number(BigInt.asUintN(CHECKSUM_BITS, Bun.hash.xxHash64(bytes, Bun.hash.xxHash64(id))));
}

/**
 * Whether bytes are those that the row stored. Earlier versions kept no checksum: until the hourly sweep has added
 * it, only zeros in their place are recognised.
 */
function isOwn({ id, checksum }: Kept, bytes: Uint8Array): boolean {
  return checksum === null ? bytes.some((byte) => byte !== 0) : checksum === checksumOf(id, bytes);
}

function isSamePlace(one: Kept, other: Kept): boolean {
  return one.segment === other.segment && one.segment_offset === other.segment_offset;
}

/** Notes on the row that its bytes are lost, and returns the time that was noted. */
async function tellLost(app: App, keeper: Keeper, row: Kept): Promise<number> {
  // How long they have been missing is measured by the same clock.
  const now = app.calmNow();
  const { segment, segment_offset: offset, size } = row;
  app.log.error(
    { kept_in: keeper, id: row.id, segment, offset, size },
    "bytes of a mail or file are missing, unreadable, or not what was stored",
  );
  await note(app, keeper, row, now);
  return now;
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
