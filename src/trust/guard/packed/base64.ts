import { isUtf8 } from "node:buffer";
import { fieldsOfMail } from "../prose.ts";
import type { Reading } from "./part.ts";

/** Characters at the beginning by which a text is told from a picture, a key or a word. */
const HEAD_CHARS = 120;
/** Characters within which the beginning of the base64 is looked for, where other signs stand before it. */
const MAX_GAP_CHARS = 4_096;
const HEAD_BYTES = 64;
const MAX_HEAD_PIECES = 8;
const MIN_BYTES = 6;
const OUTSIDE = /[^A-Za-z0-9+/_=-]+/g;
const CONTROL = /(?![\t\n\v\f\r])\p{Cc}/u;
/** How texts begin that programs take apart; such a beginning counts also with letters of other sets or a picture behind it. */
const OPENING = /^[\s\uFEFF]*(?:[[{<]|[\w-]{1,60}[ \t]*:|--|[?&]*[\w.+%[\]$*~()-]{1,60}[=&])/;

/**
 * Reads a text in base64 or base64url, also in several pieces or with other signs in it, which many programs skip.
 * Undefined where it yields no text, as pictures and most words do. A mail is taken apart into its fields.
 */
export function readBase64(text: string, max_chars: number): Reading | undefined {
  let head = headOf(text, HEAD_CHARS);
  if (head.length < MIN_BYTES && text.length > HEAD_CHARS) head = headOf(text, MAX_GAP_CHARS);
  if (head.length < MIN_BYTES || !isText(head.subarray(0, HEAD_BYTES))) return undefined;
  // A text of that length is beyond the limit once it is decoded, unless most of it is blanks.
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

/** Leaves out the last letter of a head in UTF-8 if the end has cut it in two. */
function wholeLetters(head: Buffer): Buffer {
  const cut = [1, 2, 3].find((back) => (head.at(-back) ?? 0) >= 0xc0);
  return head.length < HEAD_BYTES || cut === undefined ? head : head.subarray(0, -cut);
}

function textOf(bytes: Buffer): string {
  const set = wideSet(bytes);
  return set === undefined ? bytes.toString() : new TextDecoder(set).decode(bytes);
}

/** Whether bytes are UTF-16: known by its mark, or by the zeros in every other byte of plain letters. */
function wideSet(bytes: Buffer): "utf-16le" | "utf-16be" | undefined {
  const start = bytes.toString("latin1", 0, 4);
  if (start.startsWith("\xFF\xFE") || /^(?:[^\0]\0){2}$/.test(start)) return "utf-16le";
  return start.startsWith("\xFE\xFF") || /^(?:\0[^\0]){2}$/.test(start) ? "utf-16be" : undefined;
}
