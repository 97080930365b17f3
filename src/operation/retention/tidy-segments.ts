import type { App } from "../../app.ts";
import { listBackups } from "../../backup/kept.ts";
import { pointWithoutMail } from "../../backup/restore-points.ts";
import type { Db } from "../../db/group-commit.ts";
import { lockMailBytes } from "../../db/locks.ts";
import { olderDatabaseWarning } from "../../db/kept-position.ts";
import type { Looked } from "../../db/look-through.ts";
import { KEEPERS, type Keeper, namedIn, type NamedSegment, namedSegments } from "../../db/segment-rows.ts";
import type { MayErase, Position, SegmentFile } from "../../lib/segments.ts";
import { subtractSpans } from "../../lib/spans.ts";
import { readOrMiss, sealOlder } from "./seal.ts";
import { markMissingBytes } from "../../db/missing-bytes.ts";
import { type Kept, KEPT, storeBytes } from "../../resources/messages/stored-bytes.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";
import { MB } from "../../lib/sizes.ts";

/** How many bytes one sweep moves, so that nobody notices it. */
const MOVED_BYTES = 64 * MB;
/** Rows that are looked up at once. */
const ROWS = 20;
/** A file is emptied when less than this part of it is in use. */
const SPARSE_SHARE = 1 / 4;
/** Time after which an upgrade is not expected to be undone. */
const UPGRADE_SECONDS = 14 * DAY_SECONDS;
/** Pause between two rows, so that other writers get their turn. */
const BREATH_MS = 8;

/**
 * Sweeps the mail files: marks missing bytes and unmarks those that are back, overwrites bytes that no row references
 * (left by a crash), adds missing checksums, and deletes files that no row references. First it moves the rest out of
 * files that are mostly empty, up to `MOVED_BYTES`, except soon after an upgrade. Nothing is erased while the database
 * may have lost rows, or while a restore point or a newer database may reference it. Returns false when it has to be
 * repeated, because a backup is copying the files, or an index has been mended.
 */
export async function sweepFiles(app: App, signal: AbortSignal): Promise<boolean> {
  await findAgain(app, signal);
  await sealOlder(app, signal);
  const point = await pointWithoutMail(app.config);
  const older = await olderDatabaseWarning(app);
  if (point === undefined && older === undefined && !(await mayBeTakenBack(app)))
    await emptySparse(app, signal);
  // After this commit, everything before that end is either committed too or never will be.
  const end = await app.write(async () => app.segments.settledEnd());
  const named = await namedSegments(app.db);
  await markMissingBytes(app, named);
  // After a loss of commits a person may find mails in these files, until the note of the loss is deleted.
  if (app.upkeep.lostCommits() !== undefined) return true;
  if (point !== undefined) {
    app.log.info({ path: point }, "files of mails are left as they are until this restore point is deleted");
    return true;
  }
  if (older !== undefined) {
    app.log.warn(older);
    return true;
  }
  return clearFiles(app, signal, { end, named });
}

/** Overwrites what no row references, and deletes files without anything else. Returns false as `sweepFiles` does. */
async function clearFiles(
  app: App,
  signal: AbortSignal,
  { end, named }: { end: Position; named: NamedSegment[] },
): Promise<boolean> {
  const known = new Set(named.map(({ segment }) => segment));
  // Which rows there are is known from an index, and of a damaged one SQLite does not say that rows are missing.
  let looks: Promise<Looked> | undefined;
  const mayErase = async (): Promise<boolean> =>
    ["sound", "worn"].includes(await (looks ??= app.upkeep.lookThrough()));
  for (const file of await app.segments.files()) {
    signal.throwIfAborted();
    using lock = lockMailBytes(app.config.data.dir);
    if (!lock) return false;
    if (!(await clear(app, file, { end, mayErase }))) {
      const looked = await looks;
      if (looked !== "mended") app.log.error({ looked }, KEPT_FOR_DAMAGE);
      return looked !== "mended";
    }
    const is_lent = app.lent.inSegment(file.segment).length > 0;
    if (file.segment < end.segment && !known.has(file.segment) && !is_lent)
      await app.segments.remove(file.segment);
  }
  return true;
}

/**
 * Returns whether an upgrade may still be undone: the database of that time would look for mails at their old places.
 */
async function mayBeTakenBack({ config, calmNow }: App): Promise<boolean> {
  const since = calmNow() - UPGRADE_SECONDS;
  // A folder that cannot be read may hold a restore point.
  const kept = await listBackups(config.backup.dir).catch(() => undefined);
  return kept?.some(({ before_upgrade, created }) => before_upgrade && created > since) ?? true;
}

const KEPT_FOR_DAMAGE =
  "the database is damaged, or could not be looked through: what no row references in the files of mails is left there";

/** Overwrites bytes before `end` that no row references and nobody is downloading. Returns false where it may not. */
async function clear(
  app: App,
  { segment, size }: SegmentFile,
  { end, mayErase }: { end: Position; mayErase: MayErase },
): Promise<boolean> {
  const limit = segment === end.segment ? Math.min(size, end.offset) : size;
  if (segment > end.segment || limit === 0) return true;
  const named = await namedIn(app.db, segment);
  const kept = [...named, ...app.lent.inSegment(segment)].sort((one, other) => one.offset - other.offset);
  const gaps = subtractSpans([{ offset: 0, size: limit }], kept);
  return app.segments.erase(
    gaps.map(({ offset, size: bytes }) => ({ segment, offset, size: bytes })),
    mayErase,
  );
}

/** Checks whether missing bytes are back. */
async function findAgain(app: App, signal: AbortSignal): Promise<void> {
  for (const keeper of KEEPERS) {
    let rows: Kept[] = [];
    do {
      signal.throwIfAborted();
      rows = await app.db
        .selectFrom(keeper)
        .select(KEPT)
        .where("lost_at", "is not", null)
        .where("id", ">", rows.at(-1)?.id ?? "")
        .orderBy("id")
        .limit(ROWS)
        .execute();
      for (const row of rows) await readOrMiss(app, keeper, row);
    } while (rows.length === ROWS);
  }
}

/** Moves the rest out of files that are mostly empty, to where new bytes are appended. */
async function emptySparse(app: App, signal: AbortSignal): Promise<void> {
  let left = MOVED_BYTES;
  for (const segment of sparseOnes(await app.segments.files(), await namedSegments(app.db), app))
    for (const keeper of KEEPERS) {
      let rows: Kept[] = [];
      do {
        signal.throwIfAborted();
        rows = await rowsIn(app, { keeper, segment, after: rows.at(-1)?.id ?? "" });
        for (const row of rows) if (left > 0) left -= await move(app, keeper, row);
      } while (rows.length === ROWS && left > 0);
    }
}

function sparseOnes(files: SegmentFile[], named: NamedSegment[], { segments }: App): number[] {
  const bytes = new Map(named.map((one) => [one.segment, one.bytes]));
  return files
    .filter(({ segment }) => segment < segments.position().segment)
    .filter(({ segment, size }) => (bytes.get(segment) ?? 0) < size * SPARSE_SHARE)
    .map(({ segment }) => segment);
}

function rowsIn(
  { db }: App,
  { keeper, segment, after }: { keeper: Keeper; segment: number; after: string },
): Promise<Kept[]> {
  return db
    .selectFrom(keeper)
    .select(KEPT)
    .where("segment", "=", segment)
    .where("lost_at", "is", null)
    .where("id", ">", after)
    .orderBy("id")
    .limit(ROWS)
    .execute();
}

/** Moves the bytes of one row. Returns how many it moved. */
async function move(app: App, keeper: Keeper, row: Kept): Promise<number> {
  const bytes = await readOrMiss(app, keeper, row);
  if (!bytes) return 0;
  const moved = async (tx: Db): Promise<void> => {
    const here = tx
      .selectFrom(keeper)
      .select("id")
      .where("id", "=", row.id)
      .where("segment", "=", row.segment)
      .where("segment_offset", "=", row.segment_offset);
    if (!(await here.executeTakeFirst())) return;
    await tx
      .updateTable(keeper)
      .set(storeBytes(app, row.id, bytes))
      .where("id", "=", row.id)
      .execute();
  };
  await app.write(moved, { stores: [bytes] });
  await Bun.sleep(BREATH_MS);
  return bytes.byteLength;
}
