/** How much of a line is looked at from either end: what stands between may be a name, as long as its bearer likes. */
export const MAX_MARKER_CHARS = 400;

/** No mail program breaks lines before this column, or leaves longer ones if it breaks them at all. */
export const MIN_WRAP_COLUMN = 60;
const MAX_WRAP_COLUMN = 200;
const SERVER_CUTS = [254, 510];

export const MAIL_ADDRESS = /[^\s<>()[\]]@[^\s<>()[\]]/;
export const DATE_OR_TIME =
  /\p{Nd}{1,2}[:.h]\p{Nd}{2}|(19|20)\d{2}|\p{Nd}{1,2}[./-]\p{Nd}{1,2}[./-]|\p{Nd} ?[年月日년월일]|\p{Nd}{1,2}\.? (jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])/u;
export const DATES_AND_TIMES = new RegExp(DATE_OR_TIME.source, "gu");
export const TWO_OF_THEM = new RegExp(`(${DATE_OR_TIME.source}).*(${DATE_OR_TIME.source})`, "u");

/** Signs that stand for a colon in some scripts, and what programs put around an address instead of pointed brackets. */
const COLONS = /[\u02D0\u0589\u055D\u05C3\u1366\u17D6\u2236\u2A74\uA789\uFE13\uFE55\uFF1A]/g;
const OPENING = /[\u2039\u2329\u27E8\u3008\uFE64\uFF1C]/g;
const CLOSING = /[\u203A\u232A\u27E9\u3009\uFE65\uFF1E]/g;

/** Returns a line of the same length with plain colons and brackets, so that a mark is one in whatever script. */
export function withPlainMarks(line: string): string {
  return line.replaceAll(COLONS, ":").replaceAll(OPENING, "<").replaceAll(CLOSING, ">");
}

/** The beginning of a line as marks are looked for in it. */
export function plain(line: string): string {
  return tidied(line.slice(0, MAX_MARKER_CHARS));
}

/** Returns a text in small, plain letters, without the stars and spaces that a bold label leaves behind in text made from HTML. */
export function tidied(text: string): string {
  const narrow = text.normalize("NFKC").trim();
  const bare = narrow.startsWith("*") ? narrow.replace(/^(\*{1,2}|\*\* )(?=\p{L})/u, "") : narrow;
  return bare.toLowerCase();
}

/** Returns a line, or both ends of a long one: marks stand there. */
export function bothEnds(line: string): string {
  if (line.length <= 2 * MAX_MARKER_CHARS) return line;
  return `${line.slice(0, MAX_MARKER_CHARS)} ${line.slice(-MAX_MARKER_CHARS)}`;
}

const sources = new WeakMap<readonly string[], readonly string[]>();

/** Notes how lines came: mail programs have broken them with what is not shown in them. */
export function noteSources(lines: readonly string[], source: readonly string[]): void {
  sources.set(lines, source);
}

/** Whether a mail program, or a mail server, may have broken one line into this one and the one above. */
export function mayBeWrapped(lines: readonly string[], at: number): boolean {
  const source = sources.get(lines) ?? lines;
  return mayBeBroken(source[at - 1] ?? "", source[at] ?? "");
}

/**
 * Whether a line that shows nothing may all the same be a part of a broken one: a name may have words of characters that
 * draw nothing.
 */
export function mayBePart(source: readonly string[], at: number): boolean {
  const [above = "", line = "", below = ""] = [source[at - 1], source[at], source[at + 1]];
  if (line === "") return false;
  return widthOf(above) + 1 + widthOf(line) >= MIN_WRAP_COLUMN && mayBeBroken(line, below);
}

function mayBeBroken(above: string, below: string): boolean {
  // A long line is one that nobody breaks, unless it is a single word, or as long as a mail server lets one be.
  if (Math.min(above.length, Bun.stringWidth(above)) > MAX_WRAP_COLUMN)
    return !above.replace(/^[>\s]+/, "").includes(" ") || isCutByServer(above);
  const [word = ""] = below.split(" ", 1);
  return widthOf(above) + 1 + widthOf(word) >= MIN_WRAP_COLUMN;
}

/** Octets: some programs count these, and others characters or columns, of which there are never more. */
function widthOf(text: string): number {
  return Buffer.byteLength(text);
}

/** Whether a line has the length at which mail servers cut one (RFC 5321 §4.5.3.1.6, and the buffers of some). */
function isCutByServer(line: string): boolean {
  const octets = widthOf(line);
  return octets >= 980 || SERVER_CUTS.some((cut) => Math.abs(octets - cut) <= 4);
}
