import { promisify } from "node:util";
import { constants, crc32, deflateRaw } from "node:zlib";

/** One file of an archive. */
export interface ZipEntry {
  /** Path with `/` between folders. */
  name: string;
  /** Unix seconds. */
  modified: number;
  /** True for an entry that may be larger than 4 GB. */
  large?: boolean;
  content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

const deflate = promisify(deflateRaw) as (bytes: Uint8Array, options: object) => Promise<Buffer>;
/** Compression level: fast, and good enough because the largest files are compressed already. */
const PACKING = { level: 3, finishFlush: constants.Z_SYNC_FLUSH };
/**
 * An empty last block (RFC 1951 §3.2.3). With Z_SYNC_FLUSH the chunks before it end on a whole byte and can be joined.
 */
const DEFLATE_END = Buffer.from([3, 0]);

/** Bytes yielded at a time. */
const PIECE_BYTES = 64 * 1024;
const MAX_32 = 0xffff_ffff;
const MAX_16 = 0xffff;
/** Flags: sizes follow the content, names are UTF-8 (APPNOTE 4.4.4, bits 3 and 11). */
const FLAGS = 0x0808;
const DEFLATED = 8;
const VERSION = 20;
const VERSION_64 = 45;
/** Made on Unix: a file that its owner may read and write. */
const MADE_BY = (3 << 8) | VERSION_64;
const MODE = (0o100600 << 16) >>> 0;

/**
 * Creates a zip archive (APPNOTE 6.3.3) while it is read: memory holds one chunk of one entry, and the names of all.
 * The archive may be larger than 4 GB and have any number of entries; an entry may only with `large`.
 */
export function zipOf(entries: AsyncIterable<ZipEntry>): AsyncGenerator<Uint8Array> {
  return inPieces(partsOf(entries));
}

async function* partsOf(entries: AsyncIterable<ZipEntry>): AsyncGenerator<Uint8Array> {
  const index: Buffer[] = [];
  let offset = 0;
  for await (const entry of entries) {
    const head = headOf(entry);
    yield head.local;
    const sums = { crc: 0, packed: DEFLATE_END.byteLength, size: 0 };
    for await (const chunk of entry.content) {
      const part = await deflate(chunk, PACKING);
      sums.crc = crc32(chunk, sums.crc);
      sums.packed += part.byteLength;
      sums.size += chunk.byteLength;
      yield part;
    }
    yield DEFLATE_END;
    if (!head.large && Math.max(sums.size, sums.packed) >= MAX_32)
      throw new Error(`${entry.name} is larger than 4 GB`);
    const width = head.large ? 8 : 4;
    const descriptor = fields([4, 0x08074b50], [4, sums.crc], [width, sums.packed], [width, sums.size]);
    yield descriptor;
    index.push(recordOf(head, sums, offset));
    offset += head.local.byteLength + sums.packed + descriptor.byteLength;
  }
  yield* index;
  yield endOf(index, offset);
}

/** Joins small parts, because each yielded chunk costs a turn of the event loop. */
async function* inPieces(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of parts) {
    waiting.push(part);
    bytes += part.byteLength;
    if (bytes < PIECE_BYTES) continue;
    yield Buffer.concat(waiting);
    waiting = [];
    bytes = 0;
  }
  yield Buffer.concat(waiting);
}

interface Head {
  name: Buffer;
  large: boolean;
  moment: Buffer;
  local: Buffer;
}

/** Returns the local header of an entry. Its CRC and sizes are zero, because they are not known yet. */
function headOf({ name: text, modified, large = false }: ZipEntry): Head {
  const name = Buffer.from(text);
  const moment = dosMoment(modified);
  const extra = wideField(large ? [0, 0] : []);
  const start = fields([4, 0x04034b50], [2, large ? VERSION_64 : VERSION], [2, FLAGS], [2, DEFLATED]);
  const none = large ? MAX_32 : 0;
  const sizes = fields([4, 0], [4, none], [4, none], [2, name.byteLength], [2, extra.byteLength]);
  return { name, large, moment, local: Buffer.concat([start, moment, sizes, name, extra]) };
}

interface Sums {
  crc: number;
  packed: number;
  size: number;
}

/** Returns the entry's record in the central directory. */
function recordOf({ name, large, moment }: Head, { crc, packed, size }: Sums, offset: number): Buffer {
  const far = offset >= MAX_32;
  const extra = wideField([...(large ? [size, packed] : []), ...(far ? [offset] : [])]);
  const version = large || far ? VERSION_64 : VERSION;
  return Buffer.concat([
    fields([4, 0x02014b50], [2, MADE_BY], [2, version], [2, FLAGS], [2, DEFLATED]),
    moment,
    fields([4, crc], [4, large ? MAX_32 : packed], [4, large ? MAX_32 : size]),
    fields([2, name.byteLength], [2, extra.byteLength]),
    fields([2, 0], [2, 0], [2, 0], [4, MODE], [4, far ? MAX_32 : offset]),
    name,
    extra,
  ]);
}

/** Returns the Zip64 extra field, for numbers too large for their own fields (APPNOTE 4.5.3). */
function wideField(numbers: number[]): Buffer {
  if (numbers.length === 0) return Buffer.alloc(0);
  return fields([2, 1], [2, 8 * numbers.length], ...numbers.map((number) => [8, number] as const));
}

function endOf(index: Buffer[], offset: number): Buffer {
  let size = 0;
  for (const record of index) size += record.byteLength;
  const count = index.length;
  const end = fields(
    ...([
      [4, 0x06054b50],
      [4, 0],
      [2, Math.min(count, MAX_16)],
      [2, Math.min(count, MAX_16)],
      [4, Math.min(size, MAX_32)],
      [4, Math.min(offset, MAX_32)],
      [2, 0],
    ] as const),
  );
  if (count < MAX_16 && size < MAX_32 && offset < MAX_32) return end;
  // The length in this record leaves out its first two fields.
  const wide = fields(
    ...([
      [4, 0x06064b50],
      [8, 44],
      [2, MADE_BY],
      [2, VERSION_64],
      [4, 0],
      [4, 0],
      [8, count],
      [8, count],
      [8, size],
      [8, offset],
    ] as const),
  );
  return Buffer.concat([wide, fields([4, 0x07064b50], [4, 0], [8, offset + size], [4, 1]), end]);
}

/** Returns little-endian numbers, each given with its length in bytes. */
function fields(...numbers: (readonly [2 | 4 | 8, number])[]): Buffer {
  const buffer = Buffer.alloc(numbers.reduce((sum, [length]) => sum + length, 0));
  let at = 0;
  for (const [length, number] of numbers) {
    if (length === 8) buffer.writeBigUInt64LE(BigInt(number), at);
    else buffer.writeUIntLE(number, at, length);
    at += length;
  }
  return buffer;
}

/** Returns an MS-DOS date and time in UTC, to two seconds; the format has no time zone, and no year before 1980. */
function dosMoment(seconds: number): Buffer {
  const date = new Date(Math.max(seconds * 1_000, Date.UTC(1980)));
  const time = (date.getUTCHours() << 11) | (date.getUTCMinutes() << 5) | (date.getUTCSeconds() >> 1);
  const day = ((date.getUTCFullYear() - 1980) << 9) | ((date.getUTCMonth() + 1) << 5) | date.getUTCDate();
  return fields([2, time], [2, day]);
}
