import type { App } from "../../app.ts";
import { listBackups } from "../../backup/kept.ts";
import { pointWithoutMail } from "../../backup/restore-points.ts";
import { lockMailBytes } from "../../db/locks.ts";
import { olderWords } from "../../db/kept-position.ts";
import { KEEPERS, type Keeper, namedIn, type NamedSegment, namedSegments } from "../../db/segment-rows.ts";
import type { Position, SegmentFile } from "../../lib/segments.ts";
import { without } from "../../lib/spans.ts";
import { readOrMiss, sealOlder } from "./seal.ts";
import { noteMissing } from "../../db/missing-bytes.ts";
import { type Kept, KEPT, storeBytes } from "../../resources/messages/stored-bytes.ts";
import { DAY_SECONDS } from "../../lib/durations.ts";

/** Bytes that one sweep moves, so that nobody notices it. */
const MOVED_BYTES = 64 * 1_048_576;
/** Rows that are looked up at once. */
const ROWS = 20;
/** A file of which less than this is left is not kept for that. */
const SPARSE_SHARE = 1 / 4;
/** After which an upgrade is here to stay. */
const UPGRADE_SECONDS = 14 * DAY_SECONDS;
/** Between two rows that are moved, everybody else has the database to themselves. */
const BREATH_MS = 8;

/**
 * Puts the files of mails in order: what is missing is marked, and what is there again is not any more; what no row names,
 * as after a crash, is overwritten, what has no checksum gets one, and files of which nothing is named are deleted. What is
 * left in a file that is mostly empty is moved first, as far as `MOVED_BYTES` go, but not soon after an upgrade. Nothing
 * goes while the database may have lost rows, or while that of a restore point, or a newer one than this, may name it.
 * False when it could not come to its end: a backup copies the files.
 */
export async function sweepFiles(app: App, signal: AbortSignal): Promise<boolean> {
  await findAgain(app, signal);
  await sealOlder(app, signal);
  const point = await pointWithoutMail(app.config);
  const older = await olderWords(app);
  if (point === undefined && older === undefined && !(await mayBeTakenBack(app)))
    await emptySparse(app, signal);
  // Once this is committed, so is whatever was appended before it, or it never will be; and nothing is given out before it.
  const end = await app.write(async () => app.segments.position());
  const named = await namedSegments(app.db);
  await noteMissing(app, named);
  // What the database has lost may be found in there by a person, until the note of that is deleted.
  if (app.upkeep.lostCommits() !== undefined) return true;
  if (point !== undefined) {
    app.log.info({ path: point }, "files of mails are left as they are until this restore point is deleted");
    return true;
  }
  if (older !== undefined) {
    app.log.warn(older);
    return true;
  }
  const known = new Set(named.map(({ segment }) => segment));
  for (const file of await app.segments.files()) {
    signal.throwIfAborted();
    using lock = lockMailBytes(app.config.data.dir);
    if (!lock) return false;
    await clear(app, file, end);
    const isLent = app.lent.inSegment(file.segment).length > 0;
    if (file.segment < end.segment && !known.has(file.segment) && !isLent)
      await app.segments.remove(file.segment);
  }
  return true;
}

/** Whether somebody may still go back to before an upgrade: that database would look for mails where they were then. */
async function mayBeTakenBack({ config, calmNow }: App): Promise<boolean> {
  const since = calmNow() - UPGRADE_SECONDS;
  // A folder that cannot be looked into may have one.
  const kept = await listBackups(config.backup.dir).catch(() => undefined);
  return kept?.some(({ before_upgrade, created }) => before_upgrade && created > since) ?? true;
}

/** Overwrites what no row names before `end`, and nobody is being sent. */
async function clear(app: App, { segment, size }: SegmentFile, end: Position): Promise<void> {
  const limit = segment === end.segment ? Math.min(size, end.offset) : size;
  if (segment > end.segment || limit === 0) return;
  const named = await namedIn(app.db, segment);
  const kept = [...named, ...app.lent.inSegment(segment)].sort((one, other) => one.offset - other.offset);
  const gaps = without([{ offset: 0, size: limit }], kept);
  await app.segments.erase(gaps.map(({ offset, size: bytes }) => ({ segment, offset, size: bytes })));
}

/** Looks whether what was missing is back. */
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

/** Moves what is left in files that are mostly empty, to where new bytes go. */
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

/**
 * Returns how many bytes were moved.
 */
async function move(app: App, keeper: Keeper, row: Kept): Promise<number> {
  const bytes = await readOrMiss(app, keeper, row);
  if (!bytes) return 0;
  await app.write(async (tx) => {
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
  });
  await Bun.sleep(BREATH_MS);
  return bytes.byteLength;
}
