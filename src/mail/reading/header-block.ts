import { asWindows1252 } from "./charsets.ts";

/**
 * One header field: its name in lower case, its unfolded value, and where it begins and ends in the bytes of the raw
 * mail.
 */
export interface HeaderField {
  name: string;
  value: string;
  start: number;
  end: number;
}

export interface HeaderBlock {
  fields: HeaderField[];
  /** Bytes of the block, its closing empty line included; the body starts there. */
  size: number;
  lines: number;
  /** Why two readers could see different fields in the block, as part of a sentence; null if they cannot. */
  problem: string | null;
}

/** Returns the fields of a raw mail, read up to the given limits; `size` is still that of the whole block. */
export function readHeaderBlock(raw: Uint8Array, limits: { bytes: number; lines: number }): HeaderBlock {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const size = headerBytes(raw);
  const block = bytes.toString("latin1", 0, Math.min(size, limits.bytes));
  const rows = splitRows(block);
  const fields = joinFolds(rows.slice(0, limits.lines)).map(toField);
  return { fields, size, lines: rows.length, problem: problemOf(block, rows) };
}

/**
 * Returns the size of the header block with its closing empty line, in bytes. The block ends at the first empty line; a
 * bare LF ends a line too, as the signature check reads it.
 */
export function headerBytes(raw: Uint8Array): number {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  if (bytes[0] === 0x0a) return 1;
  if (bytes[0] === 0x0d && bytes[1] === 0x0a) return 2;
  const afterCrlf = bytes.indexOf("\n\r\n");
  const end = afterCrlf < 0 ? bytes.length : afterCrlf + 3;
  // Searches for the other line end only before the first match: a mail usually has one kind, and may be long.
  const afterLf = bytes.subarray(0, end).indexOf("\n\n");
  return afterLf < 0 ? end : afterLf + 2;
}

/** A physical line without its line end, and the bytes that it takes with it. */
interface Row {
  text: string;
  start: number;
  end: number;
  /** Whether it begins with a name and a colon. */
  opens: boolean;
}

function splitRows(block: string): Row[] {
  const rows: Row[] = [];
  let start = 0;
  while (start < block.length) {
    const lf = block.indexOf("\n", start);
    const end = lf < 0 ? block.length : lf + 1;
    const text = block.slice(start, endOfText(block, start, end));
    if (text !== "") rows.push({ text, start, end, opens: FIELD_START.test(text) });
    start = end;
  }
  return rows;
}

/** Returns where the text of a line ends, before its line end; `end` is behind that. */
function endOfText(block: string, start: number, end: number): number {
  if (block.charCodeAt(end - 1) !== LF) return end;
  return end - 2 >= start && block.charCodeAt(end - 2) === CR ? end - 2 : end - 1;
}

const LF = 0x0a;
const CR = 0x0d;

// RFC 5322 §3.6.8, with the white space before the colon of its obsolete form (§4.5). Only SP and HTAB are white space:
// other characters that libraries take for it (NBSP, NEL, VT) have opened fields that nobody signed.
const FIELD_START = /^[\x21-\x39\x3b-\x7e]+[ \t\r]*:/;
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]+[ \t\r]*$/;
const FOLD = /^[ \t]/;
/** Control characters. Read as Latin-1, UTF-8 and other character sets have bytes above 0x7F, which are allowed. */
const CONTROL = /[^\t\n\r\x20-\x7e\x80-\xff]|\r(?!\n)/;

function problemOf(block: string, rows: Row[]): string | null {
  const control = block.search(CONTROL);
  if (control >= 0) return controlProblem(block, control);
  const [first] = rows;
  if (first && FOLD.test(first.text)) return "its first line continues a field that is not there";
  const stray = rows.findIndex(({ text, opens }) => !opens && !FOLD.test(text));
  return stray < 0 ? null : `its line ${stray + 1} is neither a field nor the continuation of one`;
}

function controlProblem(block: string, at: number): string {
  const line = `its line ${block.slice(0, at).split("\n").length}`;
  if (block.charAt(at) === "\r") return `${line} holds a carriage return that ends no line`;
  const code = block.charCodeAt(at).toString(16).padStart(2, "0").toUpperCase();
  return `${line} holds the control character 0x${code}`;
}

/**
 * A line that opens no field of its own belongs to the one above, folded or not: some readers show it so, and
 * reading it otherwise could let a field appear that the signature check does not see.
 */
function joinFolds(rows: Row[]): Row[][] {
  const groups: Row[][] = [];
  for (const [index, row] of rows.entries()) {
    if (groups.length === 0 || opensField(row, rows[index + 1])) groups.push([row]);
    else groups.at(-1)?.push(row);
  }
  return groups;
}

function opensField(row: Row, next: Row | undefined): boolean {
  if (row.opens) return true;
  // Some programs take a fold between the name and the colon.
  return FIELD_NAME.test(row.text) && next !== undefined && /^[ \t\r]*:/.test(next.text);
}

function toField(rows: Row[]): HeaderField {
  // RFC 5322 §2.2.3: unfolding removes only the line end; the white space after it stays.
  const unfolded = rows.reduce(
    (text, row) => (text === "" ? row.text : text + (FOLD.test(row.text) ? "" : " ") + row.text),
    "",
  );
  // Without a colon the whole line is the name: a first line `From` counts as a second From, not as nothing.
  const colon = unfolded.indexOf(":");
  const name = colon < 0 ? unfolded : unfolded.slice(0, colon);
  return {
    name: withoutBlanks(name.replaceAll("\r", "")).toLowerCase(),
    value: readable(unfolded.slice(name.length + 1)),
    start: rows[0]?.start ?? 0,
    end: rows.at(-1)?.end ?? 0,
  };
}

const PRINTABLE = /^[\x20-\x7e]*$/;

/**
 * Decodes as UTF-8 if the bytes are valid (RFC 6532), else as Windows-1252. Characters that could end a line for other
 * readers become a space.
 */
function readable(latin1: string): string {
  if (PRINTABLE.test(latin1)) return withoutBlanks(latin1);
  const utf8 = /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, "latin1").toString() : latin1;
  return withoutBlanks(
    (utf8.includes("\ufffd") ? asWindows1252(latin1) : utf8).replace(/[\p{Cc}\u2028\u2029]/gu, " "),
  );
}

/**
 * Returns a text without SP and HTAB around it. `trim` would also remove NBSP and others, which are no white space in
 * the syntax of mail.
 */
export function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

export function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
