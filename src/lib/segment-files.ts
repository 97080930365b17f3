import { statSync } from "node:fs";
import { type FileHandle, mkdir, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "./durable-file.ts";
import { openSparse } from "./sparse.ts";

const ZEROS = Buffer.alloc(256 * 1024);
/** Parts that one call writes; the system takes 1,024 at most. */
const MAX_PARTS = 512;
const NAME = /^(\d{8})\.seg$/;
/** What `stat` counts blocks in, whatever those of the disk are. */
const BLOCK_BYTES = 512;

/** Where some bytes lie: file number, offset and size in bytes. */
export interface SegmentRange {
  segment: number;
  offset: number;
  size: number;
}

/** A byte between two ranges: all that was ever given out lies before it, or behind it. */
export interface Position {
  segment: number;
  offset: number;
}

export interface SegmentFile {
  segment: number;
  /** Its length. */
  size: number;
  /** What it takes of the disk, less than `size` where it has holes. */
  disk_bytes: number;
}

export interface Part {
  bytes: Uint8Array;
  range: SegmentRange;
}

/** Thrown by `flush` when the file that was written to is not the one any more that is at its place. */
export class SegmentGoneError extends Error {
  readonly code = "SEGMENT_GONE";
  readonly segment: number;

  constructor(dir: string, segment: number) {
    super(`${pathOf(dir, segment)} is not the file any more that this server writes mails to`);
    this.name = "SegmentGoneError";
    this.segment = segment;
  }
}

export interface OpenFile {
  segment: number;
  file: FileHandle;
  inode: number;
}

export async function filesIn(dir: string): Promise<SegmentFile[]> {
  const numbers = (await readdir(dir)).flatMap((name) => NAME.exec(name)?.[1] ?? []).map(Number);
  const files = numbers
    .sort((one, other) => one - other)
    .map(async (segment) => {
      const { size, blocks } = await stat(pathOf(dir, segment));
      return { segment, size, disk_bytes: blocks * BLOCK_BYTES };
    });
  return Promise.all(files);
}

/** The file to write to at `offset`, which is its end. */
export async function openFile(dir: string, { segment, offset }: Position): Promise<OpenFile> {
  const path = pathOf(dir, segment);
  const there = await openIfThere(path, "r+");
  // Nothing is put at the place of one that is gone: it may come back.
  if (!there && offset > 0) throw new SegmentGoneError(dir, segment);
  const file = there ?? (await makeFile(dir, path));
  const { ino: inode, size } = await file.stat();
  if (size === offset) return { segment, file, inode };
  await file.close();
  throw new SegmentGoneError(dir, segment);
}

/** Whoever looks for a file by its name would not find what is written to one that was moved, or cut to less than `size`. */
export function refuseIfGone(dir: string, { segment, inode }: OpenFile, size: number): void {
  const found = statSync(pathOf(dir, segment), { throwIfNoEntry: false });
  if (found?.ino !== inode || found.size < size) throw new SegmentGoneError(dir, segment);
}

/** Where it is gone, as after `rm -rf`, it is made anew; but not without the folder that it belongs to. */
export async function makeFolder(dir: string): Promise<void> {
  try {
    await mkdir(dir, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return;
  }
  await syncFolder(dir);
}

async function makeFile(dir: string, path: string): Promise<FileHandle> {
  await makeFolder(dir);
  const file = await open(path, "wx+", 0o600);
  // Without it the new file's name may be lost with the power, and its content with it.
  await syncFolder(path);
  return file;
}

export async function openIfThere(path: string, flags: "r" | "r+"): Promise<FileHandle | undefined> {
  try {
    return await open(path, flags);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

/** Parts that lie side by side in one file, with as few calls as the system allows. */
export async function writeAll(file: FileHandle, parts: Part[]): Promise<void> {
  for (let at = 0; at < parts.length; at += MAX_PARTS) {
    const some = parts.slice(at, at + MAX_PARTS);
    const offset = some[0]?.range.offset ?? 0;
    const { bytesWritten } = await file.writev(
      some.map(({ bytes }) => bytes),
      offset,
    );
    for (const { bytes, range } of some) {
      const written = Math.max(0, offset + bytesWritten - range.offset);
      if (written < range.size) await writeWhole(file, bytes.subarray(written), range.offset + written);
    }
  }
}

async function writeWhole(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  let done = 0;
  while (done < bytes.byteLength) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, offset + done);
    done += bytesWritten;
  }
}

/** First zeros, which the disk keeps in the place of what was there; then the room. */
export async function eraseIn(path: string, ranges: SegmentRange[]): Promise<void> {
  const opened = await openIfThere(path, "r+");
  if (!opened) return;
  await using file = opened;
  const { punch } = await openSparse();
  const { size: end } = await file.stat();
  const there = ranges.filter(({ offset }) => offset < end);
  let dirty = false;
  for (const { offset, size } of there)
    if (await zeroOut(file, offset, Math.min(offset + size, end))) dirty = true;
  if (dirty) await file.datasync();
  for (const range of there) punch(file, range);
}

/** Whether there was anything but zeros. */
async function zeroOut(file: FileHandle, start: number, end: number): Promise<boolean> {
  const { nextData } = await openSparse();
  const found = Buffer.allocUnsafe(ZEROS.byteLength);
  let dirty = false;
  let at = nextData(file, start);
  while (at < end) {
    const { bytesRead } = await file.read(found, 0, Math.min(found.byteLength, end - at), at);
    if (bytesRead === 0) return dirty;
    const zeros = ZEROS.subarray(0, bytesRead);
    if (!zeros.equals(found.subarray(0, bytesRead))) {
      await writeWhole(file, zeros, at);
      dirty = true;
    }
    at = nextData(file, at + bytesRead);
  }
  return dirty;
}

export function pathOf(dir: string, segment: number): string {
  return join(dir, `${String(segment).padStart(8, "0")}.seg`);
}
