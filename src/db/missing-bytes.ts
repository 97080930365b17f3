import { join } from "node:path";
import type { Db, Write } from "./group-commit.ts";
import {
  countBehind,
  type LostRows,
  lostRows,
  markBehind,
  type NamedSegment,
  namedSegments,
} from "./segment-rows.ts";
import type { SegmentFile, SegmentStore } from "../lib/segments.ts";
import type { Log } from "../lib/log.ts";

/** The part of `App` that these functions need. */
interface Stores {
  db: Db;
  segments: SegmentStore;
  config: { data: { dir: string } };
}

interface Marking extends Pick<Stores, "db" | "segments"> {
  write: Write;
  log: Log;
  calmNow: () => number;
}

/** Marks rows whose bytes are in no file any more, and logs that. For the process that holds the data folder. */
export async function markMissingBytes(
  { db, write, segments, log, calmNow }: Marking,
  named: NamedSegment[],
): Promise<void> {
  const short = shortSegments(named, await segments.files());
  if (short.length === 0) return;
  const marked = await write((tx) => markBehind(tx, short, calmNow()));
  if (marked === 0) return;
  log.error(
    { marked, ...(await lostRows(db)) },
    "mails or files are missing on the disk; `mailwright doctor` says more",
  );
}

/**
 * Returns the segments whose files end before the ranges that rows reference, with the size of the file; 0 for a
 * missing file.
 */
function shortSegments(named: NamedSegment[], files: SegmentFile[]): { segment: number; size: number }[] {
  const sizes = new Map(files.map(({ segment, size }) => [segment, size]));
  return named
    .map(({ segment, end }) => ({ segment, size: sizes.get(segment) ?? 0, end }))
    .filter(({ size, end }) => size < end);
}

/** Returns a sentence about bytes that were found missing; undefined when none were. */
export async function missingBytesWarning({
  db,
  config,
}: Pick<Stores, "db" | "config">): Promise<string | undefined> {
  return wordsFor(await lostRows(db), config.data.dir);
}

/** Returns that sentence including what is missing but not marked yet. */
export async function currentMissingBytesWarning({
  db,
  config,
  segments,
}: Stores): Promise<string | undefined> {
  const behind = await countBehind(db, shortSegments(await namedSegments(db), await segments.files()));
  const known = await lostRows(db);
  const all = {
    mails: known.mails + behind.mails,
    files: known.files + behind.files,
    bytes: known.bytes + behind.bytes,
  };
  return wordsFor(all, config.data.dir);
}

/** Returns how many bytes the mail files take: those that rows reference, and the remains of deleted mails. */
export async function measureMail({
  db,
  segments,
}: Pick<Stores, "db" | "segments">): Promise<{ live_bytes: number; free_bytes: number }> {
  const named = (await namedSegments(db)).reduce((sum, { bytes }) => sum + bytes, 0);
  const taken = (await segments.files()).reduce((sum, { disk_bytes }) => sum + disk_bytes, 0);
  const live_bytes = named - (await lostRows(db)).bytes;
  return { live_bytes, free_bytes: Math.max(0, taken - live_bytes) };
}

function wordsFor({ mails, files, bytes }: LostRows, dir: string): string | undefined {
  if (mails + files === 0) return undefined;
  const some = (count: number, one: string): string => `${count} ${one}${count === 1 ? "" : "s"}`;
  const what = [mails > 0 && some(mails, "mail"), files > 0 && some(files, "file")].filter(Boolean);
  return `Missing or unreadable in ${join(dir, "mail")}, or not what was stored: ${what.join(" and ")} (${Math.ceil(bytes / 1_024)} KB)`;
}
