import { isUtf8 } from "node:buffer";
import { gunzipSync } from "node:zlib";
import { recipientsIn } from "../recipients.ts";
import type { Part, Reading } from "./part.ts";

/** Characters at the beginning that decide whether base64 holds a text, or a picture, key or word. */
const HEAD_CHARS = 120;
const HEAD_BYTES = 64;
const MAX_HEAD_PIECES = 8;
const MIN_BYTES = 6;
const OUTSIDE = /[^A-Za-z0-9+/_=-]+/g;
const CONTROL = /(?![\t\n\v\f\r])\p{Cc}/u;
/** Beginnings of texts that programs parse; such a beginning counts even if unknown letters or a picture follow. */
const OPENING = /^[\s\uFEFF]*(?:[[{<]|[\w-]{1,60}[ \t]*:|--|[?&]*[\w.+%[\]$*~()-]{1,60}[=&])/;

/**
 * Reads a text in base64 or base64url, also in several pieces or with other characters between, which many decoders
 * skip. Undefined where no text results, as for pictures and most words. Who a mail goes to, and whom it is from, is named
 * apart from its words.
 */
export function readBase64(text: string, max_chars: number): Reading | undefined {
  let head = headOf(text);
  // Other characters may precede it, of any number.
  if (head.length < MIN_BYTES && text.length > HEAD_CHARS) head = headOf(text.replaceAll(OUTSIDE, ""));
  if (isGzip(head)) return readGzip(text, max_chars);
  if (head.length < MIN_BYTES) return undefined;
  if (!isText(head.subarray(0, HEAD_BYTES)) && !hasMailWithin(text.slice(0, 2 * max_chars))) return undefined;
  // Decoded, such a text would exceed the limit, unless most of it is whitespace.
  if (text.length > 2 * max_chars) return { parts: [], chars: text.length };
  const decoded = textOf(bytesOf(text));
  return { parts: partsOf(decoded), chars: decoded.length };
}

function isGzip(head: Buffer): boolean {
  return head.length > MIN_BYTES && head[0] === 0x1f && head[1] === 0x8b;
}

/** Reads what was compressed (RFC 1952); more than the limit is not unpacked. */
function readGzip(text: string, max_chars: number): Reading | undefined {
  try {
    const bytes = gunzipSync(bytesOf(text), { maxOutputLength: Math.max(1, max_chars) });
    return isText(bytes.subarray(0, HEAD_BYTES))
      ? { parts: partsOf(textOf(bytes)), chars: bytes.length }
      : undefined;
  } catch {
    return { parts: [], chars: Infinity };
  }
}

const HEX = /^(?:0x)?[0-9a-f\s:]{12,}$/i;

/** Reads a text whose bytes are written as hexadecimal numbers; undefined for a hash, a number and their like. */
export function readHex(text: string, max_chars: number): Reading | undefined {
  if (!HEX.test(text)) return undefined;
  const bytes = Buffer.from(text.replaceAll(/0x|[^0-9a-f]/gi, ""), "hex");
  const head = bytes.subarray(0, HEAD_BYTES);
  if (bytes.length < MIN_BYTES || !isText(head) || !/\p{L}/u.test(textOf(head))) return undefined;
  if (bytes.length > max_chars) return { parts: [], chars: bytes.length };
  return { parts: partsOf(textOf(bytes)), chars: bytes.length };
}

/** The beginning of base64 in a URL of data (RFC 2397), which may stand in a longer text. */
const DATA = /;base64,/i;
const DATA_TYPE = /data:(?:text\/|application\/(?:json|xml)|message\/|;|,)/i;

/** Reads the texts in URLs of data. */
export function readDataUrls(text: string, max_chars: number): Reading | undefined {
  if (!DATA_TYPE.test(text)) return undefined;
  if (text.length > max_chars) return { parts: [], chars: text.length };
  const parts = text
    .split(DATA)
    .slice(1)
    .flatMap((rest) => partsOf(textOf(bytesOf(/^[A-Za-z0-9+/_=%-]*/.exec(rest)?.[0] ?? ""))));
  return { parts, chars: text.length };
}

/** A field that programs find behind whatever else a mail begins with. */
const MAIL_WITHIN = /[\r\n](?:to|cc|bcc|content-(?:transfer-encoding|type))[ \t\r]*:/i;
/** A text of words is none in base64. */
const MAY_BE_BASE64 = /^[\w+/=\s!-]*$/;

function hasMailWithin(text: string): boolean {
  return MAY_BE_BASE64.test(text) && MAIL_WITHIN.test(bytesOf(text).toString("latin1"));
}

/** A field of a header, whose name may be as long as a line (RFC 5322 §2.2). */
const MAIL = /^\s*(?:from [^\n]*\n\s*)?[!-9;-~]+[ \t\r]*:/i;

function partsOf(text: string): Part[] {
  const people = MAIL.test(text) ? recipientsIn(text, { senders: true }) : [];
  if (people.length === 0) return [{ key: null, value: text }];
  return [...people.map(({ value }): Part => ({ key: "to", value })), { key: "body", value: text }];
}

function headOf(text: string): Buffer {
  return bytesOf(text.slice(0, HEAD_CHARS), MAX_HEAD_PIECES);
}

export function bytesOf(text: string, max_pieces?: number): Buffer {
  const signs = text.replaceAll(OUTSIDE, "");
  if (!signs.includes("=")) return Buffer.from(signs, "base64");
  return Buffer.concat(signs.split(/=+/, max_pieces).map((piece) => Buffer.from(piece, "base64")));
}

export function isText(head: Buffer): boolean {
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
  if (set !== undefined) return new TextDecoder(set).decode(bytes);
  const text = bytes.toString();
  // The set of a mail is named in it: its bytes stay what they are.
  return MAIL.test(text) && !isUtf8(bytes) ? bytes.toString("latin1") : text;
}

/** Returns the UTF-16 variant of bytes, by the byte order mark or by zeros in every other byte. */
function wideSet(bytes: Buffer): "utf-16le" | "utf-16be" | undefined {
  const start = bytes.toString("latin1", 0, 4);
  if (start.startsWith("\xFF\xFE") || /^(?:[^\0]\0){2}$/.test(start)) return "utf-16le";
  return start.startsWith("\xFE\xFF") || /^(?:\0[^\0]){2}$/.test(start) ? "utf-16be" : undefined;
}
