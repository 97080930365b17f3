import { inflateRawSync } from "node:zlib";
import { Unreadable } from "./reading.ts";
import { MB } from "../lib/sizes.ts";

const MAX_ENTRIES = 5_000;
const MAX_UNPACKED_BYTES = 200 * MB;
/**
 * Limit of the compression ratio; it counts only above a size, because small files of repeated text compress better in
 * honest documents.
 */
const MAX_RATIO = 100;
const RATIO_FROM_BYTES = 10 * MB;

/**
 * Signatures and sizes of the end record, the central directory and local headers (APPNOTE.TXT §4.3.16, §4.3.12,
 * §4.3.7).
 */
const END = 0x06054b50;
const END_BYTES = 22;
const CENTRAL = 0x02014b50;
const CENTRAL_BYTES = 46;
const LOCAL = 0x04034b50;
const LOCAL_BYTES = 30;
const MAX_COMMENT_BYTES = 0xffff;
const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED_FLAG = 1;

export interface ZipEntry {
  name: string;
  encrypted: boolean;
  method: number;
  packed: number;
  unpacked: number;
  /** The offset of its local header. */
  offset: number;
}

/** Reads the central directory of an archive without unpacking anything; undefined when it has no valid one. */
export function readZipTable(bytes: Uint8Array): ZipEntry[] | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = endOfTable(view);
  if (end === undefined) return undefined;
  const size = view.getUint32(end + 12, true);
  const start = view.getUint32(end + 16, true);
  // Other readers accept bytes before the archive or behind its directory, and then see other entries than this one.
  if (start + size !== end) return undefined;
  const entries: ZipEntry[] = [];
  let at = start;
  while (at < end) {
    if (at + CENTRAL_BYTES > end || view.getUint32(at, true) !== CENTRAL) return undefined;
    const [name, extra, comment] = [28, 30, 32].map((field) => view.getUint16(at + field, true)) as Lengths;
    entries.push({
      name: new TextDecoder().decode(bytes.subarray(at + CENTRAL_BYTES, at + CENTRAL_BYTES + name)),
      encrypted: (view.getUint16(at + 8, true) & ENCRYPTED_FLAG) !== 0,
      method: view.getUint16(at + 10, true),
      packed: view.getUint32(at + 20, true),
      unpacked: view.getUint32(at + 24, true),
      offset: view.getUint32(at + 42, true),
    });
    at += CENTRAL_BYTES + name + extra + comment;
  }
  return entries.length === view.getUint16(end + 10, true) ? entries : undefined;
}

type Lengths = [name: number, extra: number, comment: number];

/**
 * Returns the directory of an archive that is safe to pass to a library: few entries, none encrypted, each as large as
 * declared, which is checked by unpacking: `look` is shown each so. Throws `Unreadable`.
 */
export function checkZip(
  bytes: Uint8Array,
  look: (entry: ZipEntry, unpacked: Uint8Array) => void = () => {},
): ZipEntry[] {
  const entries = readZipTable(bytes);
  if (entries === undefined) throw new Unreadable("is damaged");
  if (entries.length > MAX_ENTRIES)
    throw new Unreadable(`has more than ${MAX_ENTRIES.toLocaleString("en-US")} parts`);
  if (entries.some(({ encrypted }) => encrypted)) throw new Unreadable("is protected with a password");
  const unpacked = entries.reduce((sum, entry) => sum + entry.unpacked, 0);
  const bomb = unpacked > RATIO_FROM_BYTES && unpacked > MAX_RATIO * bytes.byteLength;
  if (unpacked > MAX_UNPACKED_BYTES || bomb) throw new Unreadable("unpacks to far more than its own size");
  for (const entry of entries) look(entry, unpackEntry(bytes, entry));
  return entries;
}

/** Unpacks an entry. Throws `Unreadable` when it is not as declared. */
export function unpackEntry(bytes: Uint8Array, entry: ZipEntry): Uint8Array {
  const packed = packedBytes(bytes, entry);
  if (packed === undefined) throw new Unreadable("is damaged");
  if (entry.method === STORED && entry.packed === entry.unpacked) return packed;
  try {
    if (entry.method === DEFLATED) {
      const unpacked = inflateRawSync(packed, { maxOutputLength: Math.max(1, entry.unpacked) });
      if (unpacked.byteLength === entry.unpacked) return unpacked;
    }
  } catch {
    // Too large or not deflated: the same message fits both.
  }
  throw new Unreadable("is damaged");
}

function packedBytes(bytes: Uint8Array, { offset, packed }: ZipEntry): Uint8Array | undefined {
  if (offset + LOCAL_BYTES > bytes.byteLength) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset + offset, LOCAL_BYTES);
  if (view.getUint32(0, true) !== LOCAL) return undefined;
  const start = offset + LOCAL_BYTES + view.getUint16(26, true) + view.getUint16(28, true);
  return start + packed > bytes.byteLength ? undefined : bytes.subarray(start, start + packed);
}

/** Returns the offset of the end record: the last one, if its comment ends with the file. */
function endOfTable(view: DataView): number | undefined {
  const last = view.byteLength - END_BYTES;
  for (let at = last; at >= Math.max(0, last - MAX_COMMENT_BYTES); at--) {
    if (view.getUint32(at, true) !== END) continue;
    return at + END_BYTES + view.getUint16(at + 20, true) === view.byteLength ? at : undefined;
  }
  return undefined;
}
