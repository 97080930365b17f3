import type { App } from "../../app.ts";
import type { Db } from "../../db/database.ts";
import { KEEPERS, type Keeper } from "../../db/segment-rows.ts";
import { type Position, rangesOf } from "../../lib/segments.ts";
import { checksumOf, isLost, type Kept, KEPT, readBytes } from "../../resources/messages/stored-bytes.ts";
import { MB } from "../../lib/sizes.ts";

/** How many bytes one call reads at most, so that nobody notices it. */
const SEALED_BYTES = 64 * MB;
const LOOKED_AT = 20_000;
/** Rows that one query reads. */
const ROWS = 200;

/** Pause between two queries, for everybody else. */
const BREATH_MS = 8;

/**
 * Adds checksums to stored bytes that earlier versions wrote without one, a limited number at a time. From then on
 * wrong bytes in their place are detected; whether they were right before cannot be known.
 */
export async function sealOlder(app: App, signal: AbortSignal): Promise<void> {
  const left = { bytes: SEALED_BYTES, rows: LOOKED_AT };
  for (const keeper of KEEPERS) {
    let place = app.unsealed.get(keeper) ?? { segment: 0, offset: 0 };
    // A table that was finished once is not visited again by this process.
    while (place !== "done" && left.bytes > 0 && left.rows > 0) {
      signal.throwIfAborted();
      place = await sealBehind(app, { keeper, place, left });
      app.unsealed.set(keeper, place);
      await Bun.sleep(BREATH_MS);
    }
  }
}

/** Returns the place it reached, and subtracts its work from `left`. */
async function sealBehind(
  app: App,
  { keeper, place, left }: { keeper: Keeper; place: Position; left: { bytes: number; rows: number } },
): Promise<Position | "done"> {
  const rows = await rowsBehind(app.db, keeper, place);
  let end = place;
  for (const row of rows) {
    if (left.bytes <= 0) return end;
    if (isUnsealed(row)) left.bytes -= await seal(app, keeper, row);
    for (const { segment, offset } of rangesOf(row)) end = { segment, offset };
  }
  left.rows -= rows.length;
  return rows.length < ROWS ? "done" : end;
}

function rowsBehind(db: Db, keeper: Keeper, { segment, offset }: Position): Promise<Kept[]> {
  return db
    .selectFrom(keeper)
    .select(KEPT)
    .where("segment", "is not", null)
    .where((eb) => eb(eb.refTuple("segment", "segment_offset"), ">", eb.tuple(segment, offset)))
    .orderBy("segment")
    .orderBy("segment_offset")
    .limit(ROWS)
    .execute();
}

/** Returns whether bytes have no checksum yet. Lost bytes get theirs later, if they are found again. */
function isUnsealed({ checksum, lost_at }: Kept): boolean {
  return checksum === null && lost_at === null;
}

/** Adds the checksum of one row. Returns how many bytes it read. */
async function seal(app: App, keeper: Keeper, row: Kept): Promise<number> {
  const bytes = await readOrMiss(app, keeper, row);
  if (bytes === null) return 0;
  await app.write((tx) =>
    tx
      .updateTable(keeper)
      .set({ checksum: checksumOf(row.id, bytes) })
      .where("id", "=", row.id)
      .where("segment", "=", row.segment)
      .where("segment_offset", "=", row.segment_offset)
      .where("checksum", "is", null)
      .execute(),
  );
  return bytes.byteLength;
}

/** Returns the bytes of a row; null if they are deleted or missing, and then marks them as lost. */
export async function readOrMiss(app: App, keeper: Keeper, row: Kept): Promise<Uint8Array | null> {
  try {
    return await readBytes(app, keeper, row);
  } catch (error) {
    if (isLost(error)) return null;
    throw error;
  }
}
