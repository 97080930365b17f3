import type { ShownPicture } from "./html-pictures.ts";

const PARAGRAPHS = new Set([
  "p",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
  "ul",
  "ol",
  "table",
  "blockquote",
  "pre",
]);
const BLOCKS = new Set(
  "div tr li dl dt dd hr section article header footer main aside nav form fieldset address center figure figcaption body".split(
    " ",
  ),
);

interface HtmlPiece {
  /** Whether it stands outside of whatever mail programs wrap a quote in. */
  own: boolean;
  /** Own words have marks around what a mail program may have inserted (`inserted.ts`). */
  text: string;
  /**
   * Empty lines (0 or 1) between own words and the quote that ended them, above which an attribution may stand; null
   * where they ended otherwise.
   */
  lines_to_quote: number | null;
}

/** An HTML mail as plain text: own words and the rest in document order, without the signature. */
export interface HtmlText {
  pieces: HtmlPiece[];
  signature: string;
  pictures: ShownPicture[];
  /**
   * Where something among own words leads, or is loaded from, that no words say: a link that is a picture, a picture from
   * elsewhere.
   */
  leads: string[];
  /** Elements and comments with words in them that a reader would not have seen. */
  hidden: number;
}

/** A stretch of words of an HTML mail. */
export interface Region {
  own: boolean;
  lines_to_quote: number | null;
  parts: string[];
  /** Line ends just written, at most 2; the beginning counts as 2. */
  breaks: number;
  /** Whether the line has only spaces that keep it open. */
  blank: boolean;
}

export function regionFor(own: boolean): Region {
  return { own, lines_to_quote: null, parts: [], breaks: 2, blank: false };
}

export function append(region: Region, piece: string): void {
  region.parts.push(piece);
  region.breaks = 0;
  region.blank = false;
}

/** Adds line ends until there are at least `wanted`. */
export function breakLines(region: Region, wanted: number): void {
  const lines = region.blank && wanted > 0 ? 2 : wanted;
  for (; region.breaks < lines; region.breaks += 1) region.parts.push("\n");
  if (wanted > 0) region.blank = false;
}

/** Returns the text without trailing spaces. */
export function textOf(region: Region): string {
  return region.parts
    .join("")
    .replaceAll("\u00A0", " ")
    .split("\n")
    .map(withoutBlanksAtEnd)
    .join("\n")
    .trim();
}

/** Keeps the space behind `-- `, which distinguishes a mail program's signature mark. */
function withoutBlanksAtEnd(line: string): string {
  const text = line.trimEnd();
  return text === "--" && line !== text ? "-- " : text;
}

/** Returns the minimum number of line ends around an element. */
export function breaksAround(name: string): number {
  if (PARAGRAPHS.has(name)) return 2;
  return BLOCKS.has(name) ? 1 : 0;
}

/** A text with its white space as a browser shows it. */
export function collapsed(text: string, atLineStart: boolean): string {
  const line = text.replace(/\s+/g, " ");
  return atLineStart ? line.trimStart() : line;
}
