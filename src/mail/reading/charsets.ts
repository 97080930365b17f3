import { isUtf8 } from "node:buffer";

/** Names that say no more than that it is text (RFC 1428 §3 has `unknown-8bit`). */
const SAYS_NOTHING = /^(?:us-?ascii|ascii|ansi_x3\.4-1968|unknown(?:-8bit)?|x-unknown)?$/;
/** Its escape sequences switch between sets, also the ones that the standard of the web leaves out. */
const JAPANESE_BY_ESCAPES = /^(?:x-)?(?:iso-?2022-?jp|jis\b|cp5022)/;
const windows1252 = new TextDecoder("windows-1252");

/**
 * Text in the character set that a mail names. Where it names none: UTF-8 if the bytes are, else Windows-1252, which
 * what leaves it out was nearly always written in. Undefined where nobody knows the set. Labels mean what they mean on
 * the web (encoding.spec.whatwg.org), as in the programs that people read mail in; then what iconv knows.
 */
export function decodeCharset(bytes: Buffer, charset: string | undefined): string | undefined {
  const label = (charset ?? "").trim().toLowerCase();
  if (namesNoCharset(label)) return isUtf8(bytes) ? bytes.toString() : windows1252.decode(bytes);
  if (JAPANESE_BY_ESCAPES.test(label)) {
    return japanese().convert(bytes, { from: "JIS", to: "UNICODE", type: "string" }).toWellFormed();
  }
  // The web takes it for little-endian, whatever the text begins with.
  const known = label === "utf-16" ? undefined : decoderOf(label);
  if (known) return known.decode(bytes);
  const others = otherSets();
  return others.encodingExists(label) ? others.decode(bytes, label) : undefined;
}

// Loaded by the first mail that needs them: their tables are a tenth of the time and of the memory of a start.
function japanese(): typeof import("encoding-japanese") {
  return require("encoding-japanese");
}

function otherSets(): typeof import("iconv-lite") {
  return require("iconv-lite");
}

export function namesNoCharset(label: string): boolean {
  return SAYS_NOTHING.test(label.trim().toLowerCase());
}

/** Returns text that was read byte by byte with what Windows-1252 has in place of the control characters of Latin-1. */
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
