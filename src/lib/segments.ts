import { type FileHandle, mkdir, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** A file that has grown to this size is followed by a new one. */
const SEGMENT_BYTES = 256 * 1024 * 1024;
const ZEROS = new Uint8Array(1024 * 1024);
/** Of one call, of which the system takes 1,024 at most. */
const MAX_PARTS = 512;
const NAME = /^(\d{8})\.seg$/;

/** Where some bytes lie: file number, offset and size in bytes. */
export interface SegmentRange {
  segment: number;
  offset: number;
  size: number;
}

/** Where a row says that its bytes lie: one range at the most, none for bytes that are not in the segments. */
export function rangesOf(stored: {
  segment: number | null;
  segment_offset: number | null;
  size: number;
}): SegmentRange[] {
  const { segment, segment_offset: offset, size } = stored;
  return segment === null || offset === null ? [] : [{ segment, offset, size }];
}

/**
 * Append-only files for what is too large to go through the database's log twice. Only what a committed row
 * names counts, so that a crash, or a commit that fails, leaves nothing to mend.
 */
export interface SegmentStore extends AsyncDisposable {
  /** Where the bytes will lie once `flush` has resolved; those of one flush side by side. Not while one is under way. */
  append(bytes: Uint8Array): SegmentRange;
  /** Writes and syncs what was appended. For one caller at a time: the one that commits. */
  flush(): Promise<void>;
  read(range: SegmentRange): Promise<Buffer>;
  /** Overwrites what no committed row names any more, and syncs. Nothing is ever appended there again. */
  erase(ranges: SegmentRange[]): Promise<void>;
}

interface End {
  segment: number;
  offset: number;
}

interface Part {
  bytes: Uint8Array;
  range: SegmentRange;
}

export async function openSegments(dir: string, segment_bytes = SEGMENT_BYTES): Promise<SegmentStore> {
  let synced = await lastEnd(dir);
  let end = synced;
  let pending: Part[] = [];
  let current: { segment: number; file: FileHandle } | undefined;

  const fileOf = async (segment: number): Promise<FileHandle> => {
    if (current?.segment === segment) return current.file;
    await close();
    current = { segment, file: await openSegment(dir, segment) };
    return current.file;
  };
  const close = async (): Promise<void> => {
    const { file } = current ?? {};
    current = undefined;
    await file?.datasync();
    await file?.close();
  };

  return {
    append(bytes) {
      if (end.offset >= segment_bytes) end = { segment: end.segment + 1, offset: 0 };
      const range = { ...end, size: bytes.byteLength };
      end = { ...end, offset: end.offset + bytes.byteLength };
      pending.push({ bytes, range });
      return range;
    },
    async flush() {
      if (pending.length === 0) return;
      const batch = pending;
      pending = [];
      try {
        for (const [segment, parts] of Map.groupBy(batch, ({ range }) => range.segment))
          await writeAll(await fileOf(segment), parts);
        await current?.file.datasync();
        synced = end;
      } catch (error) {
        // What a failed write left behind is written over.
        end = synced;
        throw error;
      }
    },
    async read({ segment, offset, size }) {
      await using file = await open(pathOf(dir, segment), "r");
      const bytes = Buffer.allocUnsafe(size);
      const { bytesRead } = await file.read(bytes, 0, size, offset);
      if (bytesRead !== size)
        throw new Error(`The file ${pathOf(dir, segment)} ends before byte ${offset + size}`);
      return bytes;
    },
    async erase(ranges) {
      for (const [segment, inSegment] of Map.groupBy(ranges, (range) => range.segment))
        await eraseIn(pathOf(dir, segment), inSegment);
    },
    [Symbol.asyncDispose]: close,
  };
}

async function lastEnd(dir: string): Promise<End> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const numbers = (await readdir(dir)).map((name) => Number(NAME.exec(name)?.[1] ?? 0));
  const segment = Math.max(0, ...numbers);
  return segment === 0
    ? { segment: 1, offset: 0 }
    : { segment, offset: (await stat(pathOf(dir, segment))).size };
}

async function openSegment(dir: string, segment: number): Promise<FileHandle> {
  const known = await openIfThere(pathOf(dir, segment));
  if (known) return known;
  const file = await open(pathOf(dir, segment), "wx+", 0o600);
  // Without it the new file's name may be lost with the power, and its content with it.
  await using folder = await open(dir, "r");
  await folder.sync();
  return file;
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r+");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

/** Parts that lie side by side in one file, with as few calls as the system allows. */
async function writeAll(file: FileHandle, parts: Part[]): Promise<void> {
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

async function eraseIn(path: string, ranges: SegmentRange[]): Promise<void> {
  const opened = await openIfThere(path);
  if (!opened) return;
  await using file = opened;
  const { size: end } = await file.stat();
  for (const { offset, size } of ranges)
    for (let at = offset; at < Math.min(offset + size, end); at += ZEROS.byteLength)
      await writeWhole(file, ZEROS.subarray(0, Math.min(offset + size, end) - at), at);
  await file.datasync();
}

function pathOf(dir: string, segment: number): string {
  return join(dir, `${String(segment).padStart(8, "0")}.seg`);
}
