import type { Stats } from "node:fs";
import { constants } from "node:os";
import { type FileHandle, access, mkdir, open, readdir, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "./durable-file.ts";
import { MB } from "./sizes.ts";
import { openSparse } from "./sparse.ts";

const ZEROS = Buffer.alloc(256 * 1024);
/** How many parts one call writes; the system takes at most 1,024. */
const MAX_PARTS = 512;
const NAME = /^(\d{8})\.seg$/;
/** The unit of `stat().blocks`, whatever the block size of the disk. */
const BLOCK_BYTES = 512;

/** A range of bytes: number of the segment file, offset and size in bytes. */
export interface SegmentRange {
  segment: number;
  offset: number;
  size: number;
}

/** A place in the segment files between two ranges. */
export interface Position {
  segment: number;
  offset: number;
}

export function isBefore(one: Position, other: Position): boolean {
  return one.segment < other.segment || (one.segment === other.segment && one.offset < other.offset);
}

export interface SegmentFile {
  segment: number;
  /** Length in bytes. */
  size: number;
  /** Bytes it takes on the disk, fewer than `size` where it has holes. */
  disk_bytes: number;
}

export interface Part {
  bytes: Uint8Array;
  range: SegmentRange;
}

/** Thrown when another file, or none, is at the path of the file that is being written. */
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

/** Opens the file to append to at `offset`, its end. */
export async function openFile(dir: string, { segment, offset }: Position): Promise<OpenFile> {
  const path = pathOf(dir, segment);
  const there = await openIfThere(path, "r+");
  // A missing file is not created again: the operator may put it back.
  if (!there && offset > 0) throw new SegmentGoneError(dir, segment);
  const file = there ?? (await makeFile(dir, path));
  const { ino: inode, size } = await file.stat();
  if (size === offset) return { segment, file, inode };
  await file.close();
  throw new SegmentGoneError(dir, segment);
}

/**
 * Throws SegmentGoneError if the open file was moved, or is not of `size`, where that is known: what is written to it could not be
 * found by its name, or another process writes there too.
 */
export async function refuseIfGone(dir: string, { segment, inode }: OpenFile, size?: number): Promise<void> {
  const found = await statIfThere(pathOf(dir, segment));
  if (found?.ino !== inode || (size !== undefined && found.size !== size))
    throw new SegmentGoneError(dir, segment);
}

/** Creates the folder of mail files if it is missing, as after `rm -rf`, but not its parent folder. */
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
  // Without the sync a power cut may lose the new file's name, and its content with it.
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

/** What is left for others, such as the database, where bytes are written that many do not wait for. */
const LEFT_BYTES = 4 * MB;

/**
 * Returns how much room there is. Throws ENOSPC where so many bytes do not fit: a write that fails takes up all room until it is
 * undone.
 */
export async function roomFor(dir: string, bytes: number): Promise<number> {
  const { bavail, bsize } = await statfs(dir).catch(() => ({ bavail: Number.POSITIVE_INFINITY, bsize: 1 }));
  if (bavail * bsize >= bytes + LEFT_BYTES) return bavail * bsize;
  const message = `ENOSPC: ${Math.floor((bavail * bsize) / MB)} MB are left for ${Math.ceil(bytes / MB)} MB in ${dir}`;
  throw Object.assign(new Error(message), { code: "ENOSPC", errno: -constants.errno.ENOSPC });
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

/** Returns the beginning of a file with an unused number. */
export async function newFile(dir: string, after: number): Promise<Position> {
  const isTaken = (segment: number): Promise<boolean> =>
    access(pathOf(dir, segment)).then(
      () => true,
      () => false,
    );
  let segment = after + 1;
  while (await isTaken(segment)) segment += 1;
  return { segment, offset: 0 };
}

/** Writes adjacent parts of one file with as few system calls as possible. */
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

/** Asked before the first byte is overwritten that is not zero yet: whether that may be done. */
export type MayErase = () => Promise<boolean>;

/**
 * Overwrites ranges with zeros, then returns their blocks to the disk. Returns false, with nothing changed, where that
 * may not be done.
 */
export async function eraseIn(path: string, ranges: SegmentRange[], mayErase: MayErase): Promise<boolean> {
  const opened = await openIfThere(path, "r+");
  if (!opened) return true;
  await using file = opened;
  const { punch } = await openSparse();
  const { size: end } = await file.stat();
  const there = ranges.filter(({ offset }) => offset < end);
  let dirty = false;
  for (const { offset, size } of there)
    for await (const { at, zeros } of filledParts(file, offset, Math.min(offset + size, end))) {
      if (!dirty && !(await mayErase())) return false;
      await writeWhole(file, zeros, at);
      dirty = true;
    }
  if (dirty) await file.datasync();
  for (const range of there) punch(file, range);
  return true;
}

/** Returns the blocks of a range to the disk, where that is possible, without overwriting them. */
export async function freeIn(path: string, range: SegmentRange): Promise<void> {
  const opened = await openIfThere(path, "r+");
  if (!opened) return;
  await using file = opened;
  const { punch } = await openSparse();
  punch(file, range);
}

/** Returns the parts of a range in which there is anything but zeros. */
async function* filledParts(file: FileHandle, start: number, end: number) {
  const { nextData } = await openSparse();
  const found = Buffer.allocUnsafe(ZEROS.byteLength);
  let at = nextData(file, start);
  while (at < end) {
    const { bytesRead } = await file.read(found, 0, Math.min(found.byteLength, end - at), at);
    if (bytesRead === 0) return;
    const zeros = ZEROS.subarray(0, bytesRead);
    if (!zeros.equals(found.subarray(0, bytesRead))) yield { at, zeros };
    at = nextData(file, at + bytesRead);
  }
}

export function pathOf(dir: string, segment: number): string {
  return join(dir, `${String(segment).padStart(8, "0")}.seg`);
}
