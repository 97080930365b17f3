import { access, constants, mkdir, rm, truncate } from "node:fs/promises";
import { dirname } from "node:path";
import { MailFilesError, noAnswer, onMailFiles } from "./own-faults.ts";
import {
  eraseIn,
  filesIn,
  freeIn,
  makeFolder,
  type MayErase,
  newFile,
  openFile,
  type OpenFile,
  openIfThere,
  type Part,
  pathOf,
  type Position,
  refuseIfGone,
  roomFor,
  type SegmentFile,
  SegmentGoneError,
  type SegmentRange,
  writeAll,
} from "./segment-files.ts";
import { patientFiles } from "./patient-files.ts";
import { openKeptBytes, type SegmentWriter } from "./kept-bytes.ts";
import { MB } from "./sizes.ts";

export type { MayErase, Position, SegmentFile, SegmentRange } from "./segment-files.ts";

/** Size at which a new segment file is begun. */
const SEGMENT_BYTES = 256 * MB;
/** How long the disk may take for one batch: a memory card syncs some megabytes in a second. */
const WRITE_MS = 30_000;
/** With less room than this the disk is asked each time. */
const ASK_BELOW_BYTES = 256 * MB;
/** How long it may take for a look. */
const LOOK_MS = 5_000;

/** Returns where the bytes of a row lie: one range, or none for bytes that are not in segments. */
export function rangesOf(stored: {
  segment: number | null;
  segment_offset: number | null;
  size: number;
}): SegmentRange[] {
  const { segment, segment_offset: offset, size } = stored;
  return segment === null || offset === null ? [] : [{ segment, offset, size }];
}

/**
 * Append-only files for bytes too large to go through the database's log. Only ranges that a committed row references
 * count, so a crash or a failed commit needs no repair. No offset is ever used twice, even when files get lost or
 * shorter. Throws SegmentGoneError or MailFilesError where the machine is at fault.
 */
export interface SegmentStore extends AsyncDisposable {
  /** Whether this process may append: only one that holds the data folder does. */
  writes: boolean;
  /**
   * Writes and syncs bytes for the rows of a transaction that begins after that, so that nobody waits for their disk but who
   * stores them. To be disposed of once the transaction has ended: the place of what it did not take is free again.
   */
  keep(all: Uint8Array[]): Promise<AsyncDisposable>;
  /** Returns where bytes lie that were kept, once for each time, as every range has one owner; undefined for others. */
  take(bytes: Uint8Array): SegmentRange | undefined;
  /** Returns the bytes of a range; null where the file is missing or ends before the range does. */
  read(range: SegmentRange): Promise<Buffer | null>;
  /** Returns a range for sending to a client: it is read from the disk as fast as the client takes it. */
  fileOf(range: SegmentRange): Blob;
  /** Throws when nothing can be written now, as far as that shows without writing. */
  check: () => Promise<void>;
  /** Returns why the last write failed; undefined after one that succeeded. */
  lastFault: () => MailFilesError | undefined;
  /** Returns the end of all that was written, or is being written. */
  position(): Position;
  /** Returns the end of what no transaction to come can name for the first time. */
  settledEnd(): Position;
  /** Returns the existing files, in order. */
  files(): Promise<SegmentFile[]>;
  /**
   * Overwrites ranges that no committed row references any more, syncs, and returns their blocks to the disk. Nothing
   * is ever appended there again. Returns false, with nothing changed in that file or those after it, where `mayErase`
   * does not allow it, which is asked only where anything is left to be overwritten.
   */
  erase(ranges: SegmentRange[], mayErase?: MayErase): Promise<boolean>;
  /** Deletes a file that no row references any more and to which nothing will be appended. */
  remove(segment: number): Promise<void>;
}

interface SegmentOptions {
  /** False for a process that only reads what another one writes. */
  writes?: boolean;
  /** For each segment, the end of all that is referenced or waits to be erased: nothing is appended before that. */
  ends?: Map<number, number>;
  segment_bytes?: number;
  write_ms?: number;
  /** Throws once this process may not write any more. Asked before each batch, which may have waited for long. */
  refuseIfGone?: () => void;
}

export async function openSegments(
  dir: string,
  {
    writes = true,
    ends = new Map<number, number>(),
    segment_bytes = SEGMENT_BYTES,
    write_ms = WRITE_MS,
    refuseIfGone: refuse = (): void => undefined,
  }: SegmentOptions = {},
): Promise<SegmentStore> {
  const { batches, looks, unlessHung, look } = patientDisk(dir, write_ms);
  const files = await looks.run(() => begin(dir));
  const writer = openWriter(dir, firstFree(files, ends), segment_bytes);
  let fault: MailFilesError | undefined;
  const kept = openKeptBytes(writer, {
    async onDisk(work) {
      try {
        refuse();
        const done = await onMailFiles(() => batches.run(work));
        fault = undefined;
        return done;
      } catch (error) {
        // A missing file is not a lasting fault: the next mail goes into a new file.
        if (error instanceof MailFilesError) fault = error;
        throw error;
      }
    },
    async free(range) {
      refuse();
      await looks.run(() => freeIn(pathOf(dir, range.segment), range));
    },
  });
  return {
    writes,
    position: writer.position,
    settledEnd: kept.settledEnd,
    async keep(all) {
      if (!writes) throw new Error("Only the process that holds the data folder may store anything");
      batches.refuseHung();
      return kept.keep(all);
    },
    take: kept.take,
    lastFault: () => fault,
    check: () => look(() => tryFile(dir, writer.position())),
    read: (range) => onMailFiles(() => batches.run(() => readRange(dir, range))),
    fileOf: ({ segment, offset, size }) => Bun.file(pathOf(dir, segment)).slice(offset, offset + size),
    files: () => look(() => filesIn(dir)),
    erase: (ranges, mayErase = async () => true) => unlessHung(() => eraseAll(dir, ranges, mayErase)),
    remove: (segment) => unlessHung(() => rm(pathOf(dir, segment), { force: true })),
    async [Symbol.asyncDispose]() {
      await kept.settled();
      await writer[Symbol.asyncDispose]();
    },
  };
}

/** Bounds for the disk of a folder: once a write has hung, nothing else is begun there until it has ended. */
function patientDisk(dir: string, write_ms: number) {
  const batches = patientFiles(write_ms, () => noAnswer(dir));
  const looks = patientFiles(Math.min(write_ms, LOOK_MS), () => noAnswer(dir));
  const unlessHung = <T>(work: () => Promise<T>): Promise<T> =>
    onMailFiles(async () => {
      batches.refuseHung();
      return work();
    });
  const look = <T>(work: () => Promise<T>): Promise<T> => unlessHung(() => looks.run(work));
  return { batches, looks, unlessHung, look };
}

/** Makes the folder if it is missing, and returns what is in it. */
async function begin(dir: string): Promise<SegmentFile[]> {
  await mkdir(dirname(dir), { recursive: true, mode: 0o700 });
  await makeFolder(dir);
  return filesIn(dir);
}

async function eraseAll(dir: string, ranges: SegmentRange[], mayErase: MayErase): Promise<boolean> {
  for (const [segment, inSegment] of Map.groupBy(ranges, (range) => range.segment))
    if (!(await eraseIn(pathOf(dir, segment), inSegment, mayErase))) return false;
  return true;
}

/** Checks without writing that the folder and the file can be written. */
async function tryFile(dir: string, { segment }: Position): Promise<void> {
  await makeFolder(dir);
  // With `/.` the path fails if a file is in place of the folder.
  await access(`${dir}/.`, constants.R_OK | constants.W_OK | constants.X_OK);
  await (await openIfThere(pathOf(dir, segment), "r+"))?.close();
}

function openWriter(dir: string, start: Position, segment_bytes: number): SegmentWriter & AsyncDisposable {
  /** The end of all that was written and synced. */
  let synced = start;
  let end = synced;
  let current: OpenFile | undefined;
  const takeRoom = roomOn(dir);

  const close = async (): Promise<void> => {
    const { file } = current ?? {};
    current = undefined;
    await file?.close();
  };
  const fileOf = async ({ segment, offset }: Position): Promise<OpenFile> => {
    if (current?.segment === segment) return current;
    await close();
    const opened = await openFile(dir, { segment, offset });
    if (offset === 0) synced = { segment, offset };
    return (current = opened);
  };
  /** Writes and syncs parts of one segment. */
  const writeInOne = async (parts: Part[]): Promise<void> => {
    const [first, last = first] = [parts[0], parts.at(-1)];
    if (!first || !last) return;
    const opened = await fileOf(first.range);
    await refuseIfGone(dir, opened, first.range.offset);
    await writeAll(opened.file, parts);
    await opened.file.datasync();
    await refuseIfGone(dir, opened);
    synced = { segment: opened.segment, offset: last.range.offset + last.range.size };
  };
  /**
   * Returns the beginning of a new file after a fault: blocks of which one sync has failed may be lost with the power though
   * the next sync of the same ones says that they are on the disk, as on ext4.
   */
  const begunAnew = async (fault: unknown): Promise<Position> => {
    const is_gone = fault instanceof SegmentGoneError;
    const failed = is_gone ? fault.segment : (current?.segment ?? synced.segment);
    await close().catch(() => undefined);
    if (is_gone) return newFile(dir, failed);
    const is_empty = synced.segment === failed && synced.offset === 0;
    if (synced.segment === failed) await cutOff(dir, synced);
    return newFile(dir, is_empty ? failed - 1 : failed);
  };
  const place = async (size: number): Promise<SegmentRange> => {
    if (end.offset >= segment_bytes) end = await newFile(dir, end.segment);
    const range = { ...end, size };
    end = { ...end, offset: end.offset + size };
    return range;
  };
  return {
    async append(all) {
      await takeRoom(all);
      try {
        const parts: Part[] = [];
        for (const bytes of all) parts.push({ bytes, range: await place(bytes.byteLength) });
        for (const inOne of Map.groupBy(parts, ({ range }) => range.segment).values())
          await writeInOne(inOne);
        return parts.map(({ range }) => range);
      } catch (error) {
        end = synced = await begunAnew(error);
        throw error;
      }
    },
    position: () => end,
    [Symbol.asyncDispose]: close,
  };
}

/** Returns a function that throws ENOSPC for bytes that do not fit. It knows what was free when it last asked, and what went since. */
function roomOn(dir: string): (all: Uint8Array[]) => Promise<void> {
  let room = 0;
  return async (all) => {
    const bytes = all.reduce((sum, { byteLength }) => sum + byteLength, 0);
    if (room < bytes + ASK_BELOW_BYTES) room = await roomFor(dir, bytes);
    room -= bytes;
  };
}

/** Removes what was written behind the last byte that was synced, as it takes up the room of others. */
async function cutOff(dir: string, { segment, offset }: Position): Promise<void> {
  const path = pathOf(dir, segment);
  await (offset === 0 ? rm(path, { force: true }) : truncate(path, offset)).catch(() => undefined);
}

/** Returns where to append: behind the last byte, or in a new file where the last one has lost some. */
function firstFree(files: SegmentFile[], ends: Map<number, number>): Position {
  const segment = Math.max(0, ...files.map((file) => file.segment), ...ends.keys());
  if (segment === 0) return { segment: 1, offset: 0 };
  const size = files.find((file) => file.segment === segment)?.size ?? -1;
  return size >= (ends.get(segment) ?? 0) ? { segment, offset: size } : { segment: segment + 1, offset: 0 };
}

async function readRange(dir: string, { segment, offset, size }: SegmentRange): Promise<Buffer | null> {
  const opened = await openIfThere(pathOf(dir, segment), "r");
  if (!opened) return null;
  await using file = opened;
  const bytes = Buffer.allocUnsafe(size);
  let done = 0;
  while (done < size) {
    const { bytesRead } = await file.read(bytes, done, size - done, offset + done);
    if (bytesRead === 0) return null;
    done += bytesRead;
  }
  return bytes;
}
