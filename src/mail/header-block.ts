/** One header field: its name in lower case, its unfolded value, and the bytes it takes in the raw mail. */
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
}

/** The fields of a raw mail, read no further than the given limits; `size` is the true one all the same. */
export function readHeaderBlock(raw: Uint8Array, limits: { bytes: number; lines: number }): HeaderBlock {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength);
  const size = findBody(bytes);
  const rows = splitRows(bytes.toString("latin1", 0, Math.min(size, limits.bytes)));
  return { fields: joinFolds(rows.slice(0, limits.lines)).map(toField), size, lines: rows.length };
}

/** The block ends at the first empty line; a bare LF ends a line too, as the signature check reads it. */
function findBody(bytes: Buffer): number {
  if (bytes[0] === 0x0a) return 1;
  if (bytes[0] === 0x0d && bytes[1] === 0x0a) return 2;
  const afterLf = bytes.indexOf("\n\n");
  const afterCrlf = bytes.indexOf("\n\r\n");
  const ends = [afterLf < 0 ? bytes.length : afterLf + 2, afterCrlf < 0 ? bytes.length : afterCrlf + 3];
  return Math.min(...ends);
}

/** A physical line without its line end, with the bytes it takes including that line end. */
interface Row {
  text: string;
  start: number;
  end: number;
}

function splitRows(block: string): Row[] {
  const rows: Row[] = [];
  let start = 0;
  while (start < block.length) {
    const lf = block.indexOf("\n", start);
    const end = lf < 0 ? block.length : lf + 1;
    const text = block.slice(start, end).replace(/\r?\n$/, "");
    if (text !== "") rows.push({ text, start, end });
    start = end;
  }
  return rows;
}

// RFC 5322 §3.6.8, with the white space before the colon of its obsolete form (§4.5).
const FIELD_START = /^[\x21-\x39\x3b-\x7e]+[ \t\r]*:/;
const FIELD_NAME = /^[\x21-\x39\x3b-\x7e]+[ \t\r]*$/;

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
  if (FIELD_START.test(row.text)) return true;
  // A fold may stand between the name and the colon.
  return FIELD_NAME.test(row.text) && next !== undefined && /^[ \t\r]*:/.test(next.text);
}

function toField(rows: Row[]): HeaderField {
  // RFC 5322 §2.2.3: unfolding takes the line end alone, the white space after it stays.
  const unfolded = rows.reduce(
    (text, row) => text + (/^[ \t]/.test(row.text) || !text ? "" : " ") + row.text,
    "",
  );
  // Without a colon the whole is the name: a first line `From` counts as a second From, not as nothing.
  const [name = ""] = unfolded.split(":", 1);
  return {
    name: name.trim().toLowerCase(),
    value: readable(unfolded.slice(name.length + 1)),
    start: rows[0]?.start ?? 0,
    end: rows.at(-1)?.end ?? 0,
  };
}

/** UTF-8 where it is (RFC 6532), else the bytes as Latin-1; control characters become spaces. */
function readable(latin1: string): string {
  const utf8 = /[\x80-\xff]/.test(latin1) ? Buffer.from(latin1, "latin1").toString() : latin1;
  return (utf8.includes("\ufffd") ? latin1 : utf8).replace(/\p{Cc}/gu, " ").trim();
}
