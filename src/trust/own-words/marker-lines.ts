/** Characters of a line that are examined from either end: between them may be an arbitrarily long name. */
export const MAX_MARKER_CHARS = 400;

/**
 * Columns at which mail programs break lines: never before the first; and one that breaks lines leaves none longer than
 * the second.
 */
export const MIN_WRAP_COLUMN = 60;
const MAX_WRAP_COLUMN = 200;
const SERVER_CUTS = [254, 510];

export const MAIL_ADDRESS = /[^\s<>()[\]]@[^\s<>()[\]]/;
export const DATE_OR_TIME =
  /\p{Nd}{1,2}[:.h]\p{Nd}{2}|(19|20)\d{2}|\p{Nd}{1,2}[./-]\p{Nd}{1,2}[./-]|\p{Nd} ?[年月日년월일]|\p{Nd}{1,2}\.? (jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])/u;
export const DATES_AND_TIMES = new RegExp(DATE_OR_TIME.source, "gu");
export const TWO_OF_THEM = new RegExp(`(${DATE_OR_TIME.source}).*(${DATE_OR_TIME.source})`, "u");

/**
 * Characters used as a colon in some scripts, and characters that programs put around an address in place of angle
 * brackets.
 */
const COLONS = /[\u02D0\u0589\u055D\u05C3\u1366\u17D6\u2236\u2A74\uA789\uFE13\uFE55\uFF1A]/g;
const OPENING = /[\u2039\u2329\u27E8\u3008\uFE64\uFF1C]/g;
const CLOSING = /[\u203A\u232A\u27E9\u3009\uFE65\uFF1E]/g;

/**
 * Returns a line of the same length with plain colons and angle brackets, so that marks of any script are recognized.
 */
export function withPlainMarks(line: string): string {
  return line.replaceAll(COLONS, ":").replaceAll(OPENING, "<").replaceAll(CLOSING, ">");
}

/** Returns the beginning of a line in the form in which marks are searched. */
export function plain(line: string): string {
  return tidied(line.slice(0, MAX_MARKER_CHARS));
}

/**
 * Returns a text in lower case and plain letters, without asterisks and spaces that bold labels leave in text made from
 * HTML.
 */
export function tidied(text: string): string {
  const narrow = normalForm("NFKC", text).trim();
  const bare = narrow.startsWith("*") ? narrow.replace(/^(\*{1,2}|\*\* )(?=\p{L})/u, "") : narrow;
  return bare.toLowerCase();
}

/** Returns a line, or both ends of a long one, where marks are. */
export function bothEnds(line: string): string {
  if (line.length <= 2 * MAX_MARKER_CHARS) return line;
  return `${line.slice(0, MAX_MARKER_CHARS)} ${line.slice(-MAX_MARKER_CHARS)}`;
}

const sources = new WeakMap<readonly string[], readonly string[]>();

/** Records the lines as received: mail programs have broken them with their hidden characters. */
export function noteSources(lines: readonly string[], source: readonly string[]): void {
  sources.set(lines, source);
}

/** Returns whether a mail program or server may have broken one line into this one and the one above. */
export function mayBeWrapped(lines: readonly string[], at: number): boolean {
  const source = sources.get(lines) ?? lines;
  return mayBeBroken(source[at - 1] ?? "", source[at] ?? "");
}

/** Returns whether a line that shows nothing may be part of a broken one: a name may contain invisible characters. */
export function mayBePart(source: readonly string[], at: number): boolean {
  const [above = "", line = "", below = ""] = [source[at - 1], source[at], source[at + 1]];
  if (line === "") return false;
  return widthOf(above) + 1 + widthOf(line) >= MIN_WRAP_COLUMN && mayBeBroken(line, below);
}

function mayBeBroken(above: string, below: string): boolean {
  // A long line was not broken by anybody, unless it is a single word, or as long as mail servers allow.
  if (Math.min(above.length, Bun.stringWidth(above)) > MAX_WRAP_COLUMN)
    return !above.replace(/^[>\s]+/, "").includes(" ") || isCutByServer(above);
  const [word = ""] = below.split(" ", 1);
  return widthOf(above) + 1 + widthOf(word) >= MIN_WRAP_COLUMN;
}

/**
 * Returns the width in octets: some programs count these, others characters or columns, of which there are never more.
 */
function widthOf(text: string): number {
  return Buffer.byteLength(text);
}

/**
 * Returns whether a line has the length at which mail servers cut lines (RFC 5321 §4.5.3.1.6, and buffer sizes of
 * some).
 */
function isCutByServer(line: string): boolean {
  const octets = widthOf(line);
  return octets >= 980 || SERVER_CUTS.some((cut) => Math.abs(octets - cut) <= 4);
}
import { normalForm } from "../../lib/normal-form.ts";
