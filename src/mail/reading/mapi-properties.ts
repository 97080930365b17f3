import { decodeCharset } from "./charsets.ts";

/** Properties of Outlook's messages and files by id (MS-OXPROPS); for a property with many values, the first. */
export type MapiProperties = Map<number, { type: number; data: Uint8Array }>;

/** Types of properties, and the padded sizes in TNEF of those with a fixed size (MS-OXCDATA §2.11.1). */
export const OBJECT = 0x0d;
const STRING8 = 0x1e;
const UNICODE = 0x1f;
const BINARY = 0x102;
const VARYING = new Set([OBJECT, STRING8, UNICODE, BINARY]);
const SIZES = new Map([
  [0x02, 4],
  [0x03, 4],
  [0x04, 4],
  [0x05, 8],
  [0x06, 8],
  [0x07, 8],
  [0x0a, 4],
  [0x0b, 4],
  [0x14, 8],
  [0x40, 8],
  [0x48, 16],
]);
const MANY_VALUES = 0x1000;
const FIRST_NAMED = 0x8000;

/** Reads a list as it stands in TNEF (MS-OXTNEF §2.1.3.4), as far as its lengths and types make sense. */
export function readProperties(list: Uint8Array): MapiProperties {
  const properties: MapiProperties = new Map();
  let at = 4;
  for (let left = uint32(list, 0); left > 0 && at + 4 <= list.length; left -= 1) {
    const kind = uint16(list, at);
    const id = uint16(list, at + 2);
    const type = kind & ~MANY_VALUES;
    const values = valuesOf(list, endOfName(list, at + 4, id), { type, has_many: kind !== type });
    if (!values) break;
    if (values.first) properties.set(id, { type, data: values.first });
    at = values.end;
  }
  return properties;
}

/** Skips the name of a property that a program has named: a set id of 16 bytes, then a number or a text. */
function endOfName(list: Uint8Array, at: number, id: number): number {
  if (id < FIRST_NAMED) return at;
  const is_text = uint32(list, at + 16) === 1;
  return at + 24 + (is_text ? padded(uint32(list, at + 20)) : 0);
}

/**
 * Returns the first value of a property, and where its values end. Undefined for an unknown type, and for a length
 * beyond the list.
 */
function valuesOf(
  list: Uint8Array,
  start: number,
  { type, has_many }: { type: number; has_many: boolean },
): { first: Uint8Array | undefined; end: number } | undefined {
  const size = SIZES.get(type);
  if (size === undefined && !VARYING.has(type)) return undefined;
  const is_counted = has_many || size === undefined;
  const count = is_counted ? uint32(list, start) : 1;
  let at = is_counted ? start + 4 : start;
  let first: Uint8Array | undefined;
  for (let value = 0; value < count && at < list.length; value += 1) {
    const length = size ?? uint32(list, at);
    if (size === undefined) at += 4;
    if (length > list.length - at) return undefined;
    first ??= list.subarray(at, at + length);
    at += padded(length);
  }
  return { first, end: at };
}

/**
 * Returns the text of a property, "" if there is none. `codepage` is the Windows code page of texts that are not in
 * Unicode.
 */
export function propertyText(properties: MapiProperties, id: number, codepage: number): string {
  const property = properties.get(id);
  if (property?.type === UNICODE) return untilNull(Buffer.from(property.data).toString("utf16le"));
  const is_text = property?.type === STRING8 || property?.type === BINARY;
  return is_text ? codepageText(property.data, codepage) : "";
}

const CODEPAGES = new Map([
  [65_001, "utf-8"],
  [20_127, "us-ascii"],
  [28_591, "iso-8859-1"],
]);

export function codepageText(data: Uint8Array, codepage: number): string {
  const bytes = Buffer.from(data);
  const known = decodeCharset(bytes, CODEPAGES.get(codepage) ?? `cp${codepage}`);
  return untilNull(known ?? decodeCharset(bytes, undefined) ?? "");
}

function untilNull(text: string): string {
  const end = text.indexOf("\0");
  return end === -1 ? text : text.slice(0, end);
}

function padded(length: number): number {
  return 4 * Math.ceil(length / 4);
}

/** Reads a little-endian number; missing bytes count as 0. */
export function uint16(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) + (bytes[at + 1] ?? 0) * 256;
}

export function uint32(bytes: Uint8Array, at: number): number {
  return uint16(bytes, at) + uint16(bytes, at + 2) * 65_536;
}
