import { type Extract, type FileToRead, MAX_FILE_CHARS, Unreadable } from "./reading.ts";

/** Bytes that are read: a character in UTF-8 has at most four. */
const MAX_TEXT_BYTES = 4 * (MAX_FILE_CHARS + 1);
const LATIN = /charset\s*=\s*"?(iso-8859-1|windows-1252|latin-?1)\b/i;

type Charset = "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";

export function textExtract(file: FileToRead): Extract {
  return { text: decodeText(file) };
}

/**
 * Decodes text in the charset that the file declares or begins with, otherwise UTF-8. Throws `Unreadable` where it is
 * not text.
 */
export function decodeText({ content_type, bytes }: FileToRead, maxBytes = MAX_TEXT_BYTES): string {
  const part = bytes.subarray(0, maxBytes);
  const charset = charsetOf(content_type, part, part.byteLength < bytes.byteLength);
  if (!charset.startsWith("utf-16") && part.includes(0)) throw new Unreadable("is not text");
  return new TextDecoder(charset).decode(part);
}

function charsetOf(content_type: string, bytes: Uint8Array, cut: boolean): Charset {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  // Old programs write windows-1252 without declaring it; decoded as UTF-8 it would be full of replacement characters.
  return LATIN.test(content_type) || !isUtf8(bytes, cut) ? "windows-1252" : "utf-8";
}

/** Returns whether bytes are UTF-8. With `cut`, an incomplete character at the end is no fault, since we cut there. */
export function isUtf8(bytes: Uint8Array, cut: boolean): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut });
    return true;
  } catch {
    return false;
  }
}
