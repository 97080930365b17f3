import { type FileHandle, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Snapshot } from "../db/snapshot.ts";
import type { SegmentRange } from "../lib/segments.ts";
import { isKeyFile, isSegment, segmentName } from "./manifest.ts";
import { MB } from "../lib/sizes.ts";

const CHUNK_BYTES = MB;
const ZEROS = Buffer.alloc(CHUNK_BYTES);

/** Returns the keys and certificates of a data folder, as paths within it. */
export async function keyFiles(dir: string): Promise<string[]> {
  const found = ["", "tls", "dkim"].map(async (folder) =>
    (await namesIn(join(dir, folder))).map((name) => (folder === "" ? name : `${folder}/${name}`)),
  );
  const names = (await Promise.all(found)).flat();
  return names.filter(isKeyFile).sort();
}

export interface SegmentCopy {
  name: string;
  size: number;
  /** Yields the bytes of the copy, once. `onMissing` gets the number of missing bytes. */
  read: (onMissing: (bytes: number) => void) => AsyncGenerator<Buffer>;
}

/**
 * Returns the segments that a snapshot needs, each with the referenced bytes and zeros in place of the rest: deleted
 * mail that was not overwritten yet, or never committed, goes into no archive. All keep their length, so that nothing
 * is appended where a pending eraser still has to write.
 */
export async function segmentCopies(dir: string, snapshot: Snapshot): Promise<SegmentCopy[]> {
  const ends = new Map(snapshot.segments.map(({ segment, end }) => [segment, end]));
  const newest = (await namesIn(join(dir, "mail")))
    .filter((name) => isSegment(`mail/${name}`))
    .sort()
    .at(-1);
  if (newest !== undefined && !ends.has(Number.parseInt(newest, 10)))
    ends.set(Number.parseInt(newest, 10), 0);
  return Promise.all(
    [...ends].map(async ([segment, end]) => {
      const name = segmentName(segment);
      const path = join(dir, name);
      const length = await sizeOf(path);
      const size = Math.max(end, length);
      return {
        name,
        size,
        read: (onMissing) => namedBytes(path, { length, size, ranges: snapshot.ranges(segment), onMissing }),
      };
    }),
  );
}

interface Wanted {
  /** Bytes of the file. */
  length: number;
  /** Bytes of the copy. */
  size: number;
  ranges: Iterable<SegmentRange>;
  onMissing: (bytes: number) => void;
}

async function* namedBytes(
  path: string,
  { length, size, ranges, onMissing }: Wanted,
): AsyncGenerator<Buffer> {
  await using file = length > 0 ? await open(path, "r") : undefined;
  let at = 0;
  for (const { start, end } of joined(ranges)) {
    yield* zeros(start - at);
    const there = Math.max(start, Math.min(end, length));
    if (file) yield* bytesOf(file, start, there);
    if (end > there) onMissing(end - there);
    yield* zeros(end - there);
    at = end;
  }
  yield* zeros(size - at);
}

/** Yields ranges with adjacent ones joined. */
function* joined(ranges: Iterable<SegmentRange>): Generator<{ start: number; end: number }> {
  let run: { start: number; end: number } | undefined;
  for (const { offset, size } of ranges) {
    if (run && offset <= run.end) run.end = Math.max(run.end, offset + size);
    else {
      if (run) yield run;
      run = { start: offset, end: offset + size };
    }
  }
  if (run) yield run;
}

async function* bytesOf(file: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  let at = start;
  while (at < end) {
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, end - at));
    const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, at);
    if (bytesRead === 0) throw new Error(`A file of mails became shorter at byte ${at}`);
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}

function* zeros(count: number): Generator<Buffer> {
  for (let left = count; left > 0; left -= CHUNK_BYTES) yield ZEROS.subarray(0, Math.min(left, CHUNK_BYTES));
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(absent))?.size ?? 0;
}

async function namesIn(dir: string): Promise<string[]> {
  return (await readdir(dir).catch(absent)) ?? [];
}

function absent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
}
