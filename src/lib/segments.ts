import { type FileHandle, mkdir, open, readdir } from "node:fs/promises";
import { join } from "node:path";

/** A file is closed for good once it has grown to this size. */
const SEGMENT_BYTES = 256 * 1024 * 1024;
const NAME = /^(\d{8})\.seg$/;

/** Where some bytes lie: file number, offset and size in bytes. */
export interface SegmentRange {
  segment: number;
  offset: number;
  size: number;
}

/**
 * Append-only files for what is too large to go through the database's log twice. What is not named by a
 * committed row is garbage, so that a crash between the two leaves nothing to mend.
 */
export interface SegmentStore extends AsyncDisposable {
  /** Resolves when the bytes are synced to disk; calls that come together share a sync. */
  append(bytes: Uint8Array): Promise<SegmentRange>;
  read(range: SegmentRange): Promise<Buffer>;
}

interface Waiting {
  bytes: Uint8Array;
  resolve: (range: SegmentRange) => void;
  reject: (error: unknown) => void;
}

interface OpenSegment {
  file: FileHandle;
  segment: number;
  end: number;
}

export function openSegments(dir: string, segment_bytes = SEGMENT_BYTES): SegmentStore {
  let waiting: Waiting[] = [];
  let writing: Promise<void> | undefined;
  let current: OpenSegment | undefined;

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        if (current === undefined || current.end >= segment_bytes)
          current = await nextSegment(dir, current, segment_bytes);
        const ranges = await appendSynced(current, batch);
        batch.forEach(({ resolve }, index) => resolve(ranges[index] as SegmentRange));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    writing = undefined;
  };

  return {
    append: (bytes) =>
      new Promise((resolve, reject) => {
        waiting.push({ bytes, resolve, reject });
        writing ??= writeAll();
      }),
    async read({ segment, offset, size }) {
      await using file = await open(pathOf(dir, segment), "r");
      const bytes = Buffer.allocUnsafe(size);
      const { bytesRead } = await file.read(bytes, 0, size, offset);
      if (bytesRead !== size)
        throw new Error(`The file ${pathOf(dir, segment)} ends before byte ${offset + size}`);
      return bytes;
    },
    async [Symbol.asyncDispose]() {
      await writing;
      await current?.file.close();
    },
  };
}

/** The end moves only when the whole batch is on disk: what a failed write left behind is written over. */
async function appendSynced(current: OpenSegment, batch: Waiting[]): Promise<SegmentRange[]> {
  const ranges: SegmentRange[] = [];
  let offset = current.end;
  for (const { bytes } of batch) {
    await writeWhole(current.file, bytes, offset);
    ranges.push({ segment: current.segment, offset, size: bytes.byteLength });
    offset += bytes.byteLength;
  }
  await current.file.datasync();
  current.end = offset;
  return ranges;
}

async function writeWhole(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  let done = 0;
  while (done < bytes.byteLength) {
    const { bytesWritten } = await file.write(bytes, done, bytes.byteLength - done, offset + done);
    done += bytesWritten;
  }
}

async function nextSegment(
  dir: string,
  full: OpenSegment | undefined,
  segment_bytes: number,
): Promise<OpenSegment> {
  await full?.file.close();
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const numbers = (await readdir(dir)).map((name) => Number(NAME.exec(name)?.[1] ?? 0));
  const last = Math.max(0, ...numbers);
  if (last > 0 && last !== full?.segment) {
    const file = await open(pathOf(dir, last), "r+");
    const { size: end } = await file.stat();
    if (end < segment_bytes) return { file, segment: last, end };
    await file.close();
  }
  const segment = last + 1;
  const file = await open(pathOf(dir, segment), "wx+", 0o600);
  await syncFolder(dir);
  return { file, segment, end: 0 };
}

/** Without it the new file's name may be lost with the power, and its content with it. */
async function syncFolder(dir: string): Promise<void> {
  await using folder = await open(dir, "r");
  await folder.sync();
}

function pathOf(dir: string, segment: number): string {
  return join(dir, `${String(segment).padStart(8, "0")}.seg`);
}
