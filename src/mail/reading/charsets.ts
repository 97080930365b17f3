import { isUtf8 } from "node:buffer";

/** Character set names that say only that it is text (RFC 1428 §3 has `unknown-8bit`). */
const SAYS_NOTHING = /^(?:us-?ascii|ascii|ansi_x3\.4-1968|unknown(?:-8bit)?|x-unknown)?$/;
/**
 * Names of Japanese sets whose escape sequences switch between sets, including sequences that the web's standard leaves
 * out.
 */
const JAPANESE_BY_ESCAPES = /^(?:x-)?(?:iso-?2022-?jp|jis\b|cp5022)/;
const windows1252 = new TextDecoder("windows-1252");

/**
 * Decodes text in the character set that a mail names. If it names none: as UTF-8 if the bytes are valid UTF-8, else as
 * Windows-1252, in which such text was nearly always written. Undefined if nobody knows the set. Labels mean what they
 * mean on the web (encoding.spec.whatwg.org), as in the programs that people read mail in; other labels mean what iconv
 * knows.
 */
export function decodeCharset(bytes: Buffer, charset: string | undefined): string | undefined {
  const label = (charset ?? "").trim().toLowerCase();
  if (namesNoCharset(label)) return isUtf8(bytes) ? bytes.toString() : windows1252.decode(bytes);
  if (JAPANESE_BY_ESCAPES.test(label)) return japaneseLines(bytes);
  // The web takes "utf-16" for little-endian, whatever byte order mark the text begins with, so iconv reads it.
  const known = label === "utf-16" ? undefined : decoderOf(label);
  if (known) return known.decode(bytes);
  const others = otherSets();
  return others.encodingExists(label) ? others.decode(bytes, label) : undefined;
}

/**
 * Decodes each line by itself: a line begins and ends in ASCII (RFC 1468), and a character set that somebody's name has
 * switched to must not swallow the line ends and quote marks behind it.
 */
function japaneseLines(bytes: Buffer): string {
  const lines: string[] = [];
  for (let from = 0; from <= bytes.length;) {
    const end = bytes.indexOf(0x0a, from);
    const line = bytes.subarray(from, end === -1 ? bytes.length : end);
    lines.push(
      line.some((byte) => byte === 0x1b || byte > 0x7f) ? japaneseLine(line) : line.toString("latin1"),
    );
    if (end === -1) break;
    from = end + 1;
  }
  return lines.join("\n");
}

function japaneseLine(line: Buffer): string {
  const text = japanese().convert(line, { from: "JIS", to: "UNICODE", type: "string" }).toWellFormed();
  return text.replaceAll("\n", " ");
}

// Loaded by the first mail that needs them: their tables would take a tenth of the time and memory of a start.
function japanese(): typeof import("encoding-japanese") {
  return require("encoding-japanese");
}

function otherSets(): typeof import("iconv-lite") {
  return require("iconv-lite");
}

/** Every printable character of ASCII. */
const ASCII = Buffer.from(Array.from({ length: 95 }, (_, nth) => 0x20 + nth));

/**
 * Returns whether letters of ASCII are others in a character set that few programs know any more, such as UTF-7: who reads
 * such a text there, and who looks at it as it is, see different words.
 */
export function isOddCharset(charset: string): boolean {
  const label = charset.trim().toLowerCase();
  if (namesNoCharset(label) || decoderOf(label)) return false;
  const read = decodeCharset(ASCII, label);
  return read !== undefined && read !== ASCII.toString();
}

export function namesNoCharset(label: string): boolean {
  return SAYS_NOTHING.test(label.trim().toLowerCase());
}

/**
 * Returns text that was read byte by byte, with the characters of Windows-1252 in place of the control characters of
 * Latin-1.
 */
export function asWindows1252(latin1: string): string {
  return latin1.replace(/[\x80-\x9f]+/g, (controls) => windows1252.decode(Buffer.from(controls, "latin1")));
}

function decoderOf(label: string): TextDecoder | undefined {
  try {
    return new TextDecoder(label as Bun.Encoding);
  } catch {
    return undefined;
  }
}
