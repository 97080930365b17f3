import { isUtf8 } from "node:buffer";
import { fieldsOfMail } from "../prose.ts";
import type { Reading } from "./part.ts";

/** What tells a text from a picture, a key or a word. */
const HEAD_CHARS = 120;
/** So far behind other signs its beginning may be. */
const MAX_GAP_CHARS = 4_096;
const HEAD_BYTES = 64;
const MAX_HEAD_PIECES = 8;
const MIN_BYTES = 6;
const OUTSIDE = /[^A-Za-z0-9+/_=-]+/g;
const CONTROL = /(?![\t\n\v\f\r])\p{Cc}/u;
/** With letters of other sets in it, or a picture behind it, a text may begin as those that programs take apart do. */
const OPENING = /^[\s\uFEFF]*(?:[[{<]|[\w-]{1,60}[ \t]*:|--|[?&]*[\w.+%[\]$*~()-]{1,60}[=&])/;

/**
 * The text that is given as base64 or base64url, also with other signs in it, which many programs leave out, or in
 * several pieces. Undefined where it yields no text, as pictures and most words do. That of a mail is told by its fields.
 */
export function readBase64(text: string, max_chars: number): Reading | undefined {
  let head = headOf(text, HEAD_CHARS);
  if (head.length < MIN_BYTES && text.length > HEAD_CHARS) head = headOf(text, MAX_GAP_CHARS);
  if (head.length < MIN_BYTES || !isText(head.subarray(0, HEAD_BYTES))) return undefined;
  // No text of that length is within the limit, but for its blanks.
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

/** A letter may be cut in two by the end. */
function wholeLetters(head: Buffer): Buffer {
  const cut = [1, 2, 3].find((back) => (head.at(-back) ?? 0) >= 0xc0);
  return head.length < HEAD_BYTES || cut === undefined ? head : head.subarray(0, -cut);
}

function textOf(bytes: Buffer): string {
  const set = wideSet(bytes);
  return set === undefined ? bytes.toString() : new TextDecoder(set).decode(bytes);
}

/** By its mark, or by the zeros in every other byte of plain letters. */
function wideSet(bytes: Buffer): "utf-16le" | "utf-16be" | undefined {
  const start = bytes.toString("latin1", 0, 4);
  if (start.startsWith("\xFF\xFE") || /^(?:[^\0]\0){2}$/.test(start)) return "utf-16le";
  return start.startsWith("\xFE\xFF") || /^(?:\0[^\0]){2}$/.test(start) ? "utf-16be" : undefined;
}
