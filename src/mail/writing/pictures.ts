import { sha256 } from "../../lib/sha256.ts";

/** A picture attached to a mail and shown in it. */
export interface Picture {
  filename: string;
  /** The Content-ID of its part, without brackets (RFC 2392). */
  cid: string;
  /** In pixels. */
  width: number;
}

/** Wider pictures are scaled down; Outlook uses only this number. */
export const MAX_PICTURE_PX = 640;
/** Bytes of a file that are hashed for its Content-ID. */
const HASHED_BYTES = 65_536;
const MAX_PIXELS = 16_384;

interface File {
  filename: string;
  content_type: string;
  bytes: Uint8Array;
}

/** Returns a file as a picture if every mail program can show it: PNG, JPEG and GIF, recognized by content. */
export function pictureOf({ filename, content_type, bytes }: File): Picture | undefined {
  const size = sizeOf(content_type, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  if (size === undefined || !isSize(size.width) || !isSize(size.height)) return undefined;
  const name = sha256(
    Buffer.concat([Buffer.from(`${filename}\0${bytes.length}\0`), bytes.subarray(0, HASHED_BYTES)]),
    "hex",
  );
  return { filename, cid: `${name.slice(0, 32)}@mailwright`, width: size.width };
}

function isSize(pixels: number): boolean {
  return pixels > 0 && pixels <= MAX_PIXELS;
}

interface Size {
  width: number;
  height: number;
}

function sizeOf(content_type: string, bytes: Buffer): Size | undefined {
  if (bytes.length < 26) return undefined;
  const head = bytes.toString("latin1", 0, 8);
  if (content_type === "image/png" && head === "\x89PNG\r\n\x1a\n")
    return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (content_type === "image/gif" && /^GIF8[79]a/.test(head))
    return { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (content_type === "image/jpeg" && head.startsWith("\xff\xd8")) return jpegSize(bytes);
  return undefined;
}

/** Returns the size in the frame header of a JPEG (ITU T.81, B.2.2), which follows segments of known lengths. */
function jpegSize(bytes: Buffer): Size | undefined {
  let at = 2;
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] ?? 0;
    const is_frame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (is_frame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    // Fill bytes may precede a marker.
    at += marker === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2);
  }
  return undefined;
}
