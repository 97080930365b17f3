/** How much of a line is looked at from either end: what stands between may be a name, as long as its bearer likes. */
export const MAX_MARKER_CHARS = 400;

/** No mail program breaks lines before this column, or leaves longer ones if it breaks them at all. */
export const MIN_WRAP_COLUMN = 60;
const MAX_WRAP_COLUMN = 200;

export const MAIL_ADDRESS = /[^\s<>()[\]]@[^\s<>()[\]]/;
export const DATE_OR_TIME =
  /\p{Nd}{1,2}[:.h]\p{Nd}{2}|(19|20)\d{2}|\p{Nd}{1,2}[./-]\p{Nd}{1,2}[./-]|\p{Nd} ?[年月日년월일]|\p{Nd}{1,2}\.? (jan|feb|m[aä]r|apr|ma[ijy]|jun|jul|aug|sep|o[ck]t|nov|de[cz])/u;
export const DATES_AND_TIMES = new RegExp(DATE_OR_TIME.source, "gu");
export const TWO_OF_THEM = new RegExp(`(${DATE_OR_TIME.source}).*(${DATE_OR_TIME.source})`, "u");

/** The beginning of a line as marks are looked for in it. */
export function plain(line: string): string {
  return tidied(line.slice(0, MAX_MARKER_CHARS));
}

/** Without the stars and spaces that a bold label leaves behind in text made from HTML, and no wide letters. */
export function tidied(text: string): string {
  const narrow = text.normalize("NFKC").trim();
  const bare = narrow.startsWith("*") ? narrow.replace(/^(\*{1,2}|\*\* )(?=\p{L})/u, "") : narrow;
  return bare.toLowerCase();
}

/** For marks that stand at the beginning and at the end of one line. */
export function bothEnds(line: string): string {
  if (line.length <= 2 * MAX_MARKER_CHARS) return line;
  return `${line.slice(0, MAX_MARKER_CHARS)} ${line.slice(-MAX_MARKER_CHARS)}`;
}

/** Whether a mail program may have broken one line into these two. */
export function mayBeWrapped(above: string, below: string): boolean {
  const [word = ""] = below.split(" ", 1);
  if (above.length > MAX_WRAP_COLUMN) return false;
  return Bun.stringWidth(above) + 1 + Bun.stringWidth(word) >= MIN_WRAP_COLUMN;
}
