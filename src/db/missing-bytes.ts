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

/** The part of `App` that this is about. */
interface Stores {
  db: Db;
  segments: SegmentStore;
  config: { data: { dir: string } };
}

interface Marking extends Pick<Stores, "db" | "segments"> {
  write: Write;
  log: Log;
  now: () => number;
}

/** Marks what rows name and no file has any more, and says so. For the process that holds the data folder. */
export async function noteMissing(
  { db, write, segments, log, now }: Marking,
  named: NamedSegment[],
): Promise<void> {
  const short = shortOnes(named, await segments.files());
  if (short.length === 0) return;
  const marked = await write((tx) => markBehind(tx, short, now()));
  if (marked === 0) return;
  log.error(
    { marked, ...(await lostRows(db)) },
    "mails or files are missing on the disk; `mailwright doctor` says more",
  );
}

/** Segments whose files end before what rows name; one that is gone has 0 bytes. */
function shortOnes(named: NamedSegment[], files: SegmentFile[]): { segment: number; size: number }[] {
  const sizes = new Map(files.map(({ segment, size }) => [segment, size]));
  return named
    .map(({ segment, end }) => ({ segment, size: sizes.get(segment) ?? 0, end }))
    .filter(({ size, end }) => size < end);
}

/** What has been found missing, as a sentence; undefined when nothing is. */
export async function missingWords({
  db,
  config,
}: Pick<Stores, "db" | "config">): Promise<string | undefined> {
  return wordsFor(await lostRows(db), config.data.dir);
}

/** The same, with what nobody has noticed yet. */
export async function missingNow({ db, config, segments }: Stores): Promise<string | undefined> {
  const behind = await countBehind(db, shortOnes(await namedSegments(db), await segments.files()));
  const known = await lostRows(db);
  const all = {
    mails: known.mails + behind.mails,
    files: known.files + behind.files,
    bytes: known.bytes + behind.bytes,
  };
  return wordsFor(all, config.data.dir);
}

/** How much of the disk the files of mails take: for what rows name, and for what is left of deleted mails. */
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
