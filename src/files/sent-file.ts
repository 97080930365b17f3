import { MB } from "../lib/sizes.ts";

export const MAX_FILE_BYTES = 10 * MB;
/** Characters of base64, with room for line breaks. */
const MAX_WRITTEN_CHARS = 1.5 * MAX_FILE_BYTES;
export const MAX_FILES = 10;

/** The decoded `data` of an attachment in an API call. */
export type SentFile = { bytes: Uint8Array<ArrayBuffer> } | { fault: "invalid_base64" | "too_large" };

/** Decodes base64, with or without padding and line breaks. */
export function decodeFile(data: string): SentFile {
  if (data.length > MAX_WRITTEN_CHARS) return { fault: "too_large" };
  let text = data.trimEnd();
  for (let padding = 0; padding < 2 && text.endsWith("="); padding += 1) text = text.slice(0, -1).trimEnd();
  if (text.endsWith("=")) return { fault: "invalid_base64" };
  try {
    const bytes = Uint8Array.fromBase64(text);
    return bytes.byteLength > MAX_FILE_BYTES ? { fault: "too_large" } : { bytes };
  } catch {
    return { fault: "invalid_base64" };
  }
}
