/** Values of Content-Transfer-Encoding that mean uuencode (RFC 2045 §6.3 leaves such names to private use). */
export const UUENCODED = /^x-?uue(?:ncode)?$|^uuencode$/i;

/** A file that was embedded in a text. */
export interface UuFile {
  name: string;
  bytes: Uint8Array;
}

const BEGIN = /^begin [0-7]{3,4} ?(.{0,255})$/;
const LINE = /^[ -`]{1,90}$/;

/**
 * Takes files in uuencode (POSIX.1-2024, `uuencode`) out of a text whose lines end in `\n`: complete files from "begin"
 * to "end", at most `max`. Text that only looks like a file stays. No line is looked at more than twice, because no
 * line of a file can be the "begin" of another.
 */
export function takeUuencoded(text: string, max: number): { text: string; files: UuFile[] } {
  if (!text.startsWith("begin ") && !text.includes("\nbegin ")) return { text, files: [] };
  const lines = text.split("\n");
  const left: string[] = [];
  const files: UuFile[] = [];
  for (let at = 0; at < lines.length; at++) {
    const name = files.length < max ? BEGIN.exec(lines[at] ?? "")?.[1] : undefined;
    const end = name === undefined ? -1 : endOfFile(lines, at + 1);
    if (name === undefined || end === -1) left.push(lines[at] ?? "");
    else {
      files.push({ name: name.trim(), bytes: decodeLines(lines.slice(at + 1, end)) });
      at = end;
    }
  }
  return { text: left.join("\n"), files };
}

/** Returns the first file of a part in uuencode; the bytes unchanged if it has none. */
export function uudecode(bytes: Buffer): Uint8Array {
  const text = bytes.toString("latin1").replaceAll("\r\n", "\n");
  return takeUuencoded(text, 1).files[0]?.bytes ?? bytes;
}

/** Returns the index of "end", behind the line of length 0 that ends the data; -1 if anything else comes before it. */
function endOfFile(lines: string[], start: number): number {
  let is_whole = true;
  for (let at = start; at < lines.length; at++) {
    const line = lines[at] ?? "";
    // Some programs leave out the line of length 0; the data must then be complete.
    if (line.trimEnd() === "end") return is_whole && at > start ? at : -1;
    if (lengthOf(line) === 0) return lines[at + 1]?.trimEnd() === "end" ? at + 1 : -1;
    const letters = 4 * Math.ceil(lengthOf(line) / 3);
    // Some programs put a checksum behind the data.
    if (!LINE.test(line) || line.trimEnd().length > letters + 2) return -1;
    is_whole &&= line.length > letters;
  }
  return -1;
}

/**
 * Decodes lines. Blanks at the end of a line may have been cut off on the way; a blank stands for zero, so what is
 * missing is zero.
 */
function decodeLines(lines: string[]): Uint8Array {
  const bytes = new Uint8Array(lines.reduce((sum, line) => sum + lengthOf(line), 0));
  let to = 0;
  for (const line of lines) {
    const end = to + lengthOf(line);
    for (let from = 1; to < end; from += 4) {
      const [a, b, c, d] = [six(line, from), six(line, from + 1), six(line, from + 2), six(line, from + 3)];
      const three = [(a << 2) | (b >> 4), ((b & 15) << 4) | (c >> 2), ((c & 3) << 6) | d];
      for (const byte of three) if (to < end) bytes[to++] = byte;
    }
  }
  return bytes;
}

function lengthOf(line: string): number {
  return line === "" ? 0 : six(line, 0);
}

function six(line: string, at: number): number {
  return at < line.length ? (line.charCodeAt(at) - 32) & 63 : 0;
}
