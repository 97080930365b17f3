import { isUtf8 } from "node:buffer";
import { fieldsOfMail } from "../prose.ts";
import type { Reading } from "./part.ts";

/** Characters at the beginning that decide whether base64 holds a text, or a picture, key or word. */
const HEAD_CHARS = 120;
/** Characters within which base64 has to begin if other characters precede it. */
const MAX_GAP_CHARS = 4_096;
const HEAD_BYTES = 64;
const MAX_HEAD_PIECES = 8;
const MIN_BYTES = 6;
const OUTSIDE = /[^A-Za-z0-9+/_=-]+/g;
const CONTROL = /(?![\t\n\v\f\r])\p{Cc}/u;
/** Beginnings of texts that programs parse; such a beginning counts even if unknown letters or a picture follow. */
const OPENING = /^[\s\uFEFF]*(?:[[{<]|[\w-]{1,60}[ \t]*:|--|[?&]*[\w.+%[\]$*~()-]{1,60}[=&])/;

/**
 * Reads a text in base64 or base64url, also in several pieces or with other characters between, which many decoders
 * skip. Undefined where no text results, as for pictures and most words. A mail is parsed into its fields.
 */
export function readBase64(text: string, max_chars: number): Reading | undefined {
  let head = headOf(text, HEAD_CHARS);
  if (head.length < MIN_BYTES && text.length > HEAD_CHARS) head = headOf(text, MAX_GAP_CHARS);
  if (head.length < MIN_BYTES || !isText(head.subarray(0, HEAD_BYTES))) return undefined;
  // Decoded, such a text would exceed the limit, unless most of it is whitespace.
  if (text.length > 2 * max_chars) return { parts: [], chars: text.length };
  const decoded = textOf(bytesOf(text));
  return { parts: fieldsOfMail(decoded) ?? [{ key: null, value: decoded }], chars: decoded.length };
}

function headOf(text: string, end: number): Buffer {
  return bytesOf(text.slice(0, end), MAX_HEAD_PIECES);
}

function bytesOf(text: string, max_pieces?: number): Buffer {
  const signs = text.replaceAll(OUTSIDE, "");
  if (!signs.includes("=")) return Buffer.from(signs, "base64");
  return Buffer.concat(signs.split(/=+/, max_pieces).map((piece) => Buffer.from(piece, "base64")));
}

function isText(head: Buffer): boolean {
  const text = textOf(head);
  if (OPENING.test(text)) return true;
  return !CONTROL.test(text) && (wideSet(head) !== undefined || isUtf8(wholeLetters(head)));
}

/** Removes a last UTF-8 character that was cut in two. */
function wholeLetters(head: Buffer): Buffer {
  const cut = [1, 2, 3].find((back) => (head.at(-back) ?? 0) >= 0xc0);
  return head.length < HEAD_BYTES || cut === undefined ? head : head.subarray(0, -cut);
}

function textOf(bytes: Buffer): string {
  const set = wideSet(bytes);
  return set === undefined ? bytes.toString() : new TextDecoder(set).decode(bytes);
}

/** Returns the UTF-16 variant of bytes, by the byte order mark or by zeros in every other byte. */
function wideSet(bytes: Buffer): "utf-16le" | "utf-16be" | undefined {
  const start = bytes.toString("latin1", 0, 4);
  if (start.startsWith("\xFF\xFE") || /^(?:[^\0]\0){2}$/.test(start)) return "utf-16le";
  return start.startsWith("\xFE\xFF") || /^(?:\0[^\0]){2}$/.test(start) ? "utf-16be" : undefined;
}
