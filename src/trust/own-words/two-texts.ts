import { bareAddress } from "./html-links.ts";
import { type Piece, piecesOf } from "./pieces.ts";
import { isMarked, partsByMark, unmarked, withoutMarked } from "./inserted.ts";

/** Letters that the HTML may have between two lines of the plain text, such as the description of a picture. */
const MAX_GAP_CHARS = 200;
/** Letters of one link card, or other inserted text, that the plain text may lack. */
const MAX_INSERTED_CHARS = 2_000;

interface Line {
  shown: string;
  /** The part that is the sender's own; null where none is. */
  own: string | null;
}

/**
 * Splits lines into pieces: inserted words at the end are a separate piece, those between own words are shown with
 * them.
 */
function partLines(lines: Line[]): Piece[] {
  const first = lines.findIndex(({ shown, own }) => shown !== own);
  const textOfLines = (some: Line[]): string => some.map(({ shown }) => shown).join("\n");
  if (first === -1) return piecesOf(textOfLines(lines), "");
  if (lines.slice(first).every(({ own }) => (own ?? "").trim() === ""))
    return piecesOf(textOfLines(lines.slice(0, first)), textOfLines(lines.slice(first)));
  const own = lines.map((line) => line.own).filter((line) => line !== null);
  return [
    {
      own: true,
      text: own
        .join("\n")
        .replace(/\n{3,}/g, "\n\n")
        .trim(),
      shown: textOfLines(lines).trim(),
    },
  ];
}

/** Splits a piece of the HTML at the words marked as inserted. */
export function withoutInserted(piece: Piece): Piece[] {
  if (!piece.own || !isMarked(piece.text)) return [piece];
  const lines = piece.text.split("\n").map((line) => {
    const shown = unmarked(line);
    if (!isMarked(line)) return { shown, own: shown };
    const own = withoutMarked(line).trim();
    return { shown, own: saysSomething(own) ? own : null };
  });
  return partLines(lines);
}

/** The letters of the HTML's own pieces. */
interface Shown {
  letters: string;
  /** Ranges of these letters that may be inserted. */
  inserted: Range[];
  addresses: Set<string>;
}

function shownBy(own: string): Shown {
  const shown: Shown = { letters: "", inserted: [], addresses: new Set() };
  const found: string[] = [];
  let length = 0;
  for (const part of partsByMark(own)) {
    const letters = lettersOf(part.text).slice(0, part.inserted ? MAX_INSERTED_CHARS : undefined);
    if (part.inserted && letters !== "") shown.inserted.push({ from: length, to: length + letters.length });
    if (!part.inserted) for (const address of addressesIn(part.text)) shown.addresses.add(address);
    found.push(letters);
    length += letters.length;
  }
  return { ...shown, letters: found.join("") };
}

/**
 * Returns the pieces of the plain text. Only those words are the sender's own that the HTML shows as own too, in the
 * same order; typography, numbering and links beside own words may differ. `html` is the HTML's own text, with its
 * marks.
 */
export function ownInBoth(pieces: Piece[], html: string): Piece[] {
  const shown = shownBy(html);
  const find = finderIn(shown);
  return pieces.flatMap((piece) => {
    if (!piece.own) return [piece];
    const lines = piece.text.split("\n").map((line) => ({ shown: line, own: ownIn(line, shown, find) }));
    return partLines(lines);
  });
}

/** A stretch of letters. */
interface Range {
  from: number;
  to: number;
}

/** Finds the inserted ranges in the letters of the next line of the plain text; null where the HTML lacks the line. */
type Find = (letters: string) => Range[] | null;

function finderIn({ letters, inserted }: Shown): Find {
  const gap = MAX_GAP_CHARS + (inserted.length > 0 ? MAX_INSERTED_CHARS : 0);
  let searched = 0;
  let passed = 0;
  return (wanted) => {
    const at = letters.slice(searched, searched + wanted.length + gap).indexOf(wanted);
    if (at === -1) return null;
    const from = searched + at;
    searched = from + wanted.length;
    const found: Range[] = [];
    for (let range = inserted[passed]; range && range.from < searched; range = inserted[passed]) {
      if (range.to > from) found.push({ from: range.from - from, to: range.to - from });
      if (range.to > searched) break;
      passed += 1;
    }
    return found;
  };
}

/** Returns the part of a line that is the sender's own; null where none is. */
function ownIn(line: string, shown: Shown, find: Find): string | null {
  const letters = lettersOf(line);
  const isKnown = (address: string): boolean => shown.addresses.has(bareAddress(address));
  const inserted = letters === "" ? [] : find(letters);
  if (inserted === null) return isKnown(line) ? line : null;
  // Inserted text may contain URLs, and may end on a line of the sender.
  const may_stand = shown.inserted.length === 0 && letters !== "";
  const own = withoutLetters(line, inserted)
    .replace(PICTURE, "")
    .replace(LINK, (link) => (may_stand || isKnown(link.slice(1, -1)) ? link : ""));
  if (own === line) return line;
  return saysSomething(own) ? own.trimEnd() : null;
}

/** A character that belongs to the word beside it. */
const GLUED = /[^\s<>\p{L}\p{N}\p{Cs}]/u;
const ENDS_SENTENCE = /^[.,;:!?)]*$/;

/** Removes ranges of a line's letters, with the punctuation directly beside them. */
function withoutLetters(line: string, cuts: Range[]): string {
  if (cuts.length === 0) return line;
  const places = placesOfLetters(line);
  const kept: string[] = [];
  let done = 0;
  for (const { from, to } of cuts) {
    let start = places[Math.max(0, from)] ?? line.length;
    while (start > done && GLUED.test(line.charAt(start - 1))) start -= 1;
    const last = places[Math.min(places.length, to) - 1] ?? line.length;
    const behind = last + String.fromCodePoint(line.codePointAt(last) ?? 0).length;
    let end = behind;
    while (GLUED.test(line.charAt(end))) end += 1;
    if (ENDS_SENTENCE.test(line.slice(behind, end))) end = behind;
    kept.push(line.slice(done, start).trimEnd(), line.charAt(end) === "<" ? " " : "");
    done = end;
  }
  return [...kept, line.slice(done)].join("").trim();
}

/** "1.", "a)", "iv.": HTML has only the kind of numbering, not the numbers. */
const NUMBERING = /^[ \t]*(\p{Nd}{1,3}|[a-z]|[ivxlc]{2,7})[.)](?=\s)/gimu;
const LINK = /<(https?:|mailto:)[^<>\s]*>|<[^<>\s@]+@[^<>\s@]+>/gi;
/** The placeholder of a picture, whose description is not the sender's word. */
const PICTURE = /\[(image|cid|bild):[^[\]\n]{0,200}\]/gi;

/** Returns whether a line is only the placeholder of a picture. */
export function isPlaceholder(line: string): boolean {
  return line.trim() !== "" && line.replace(PICTURE, "").trim() === "";
}

/**
 * Returns the letters and numbers of a text for comparison. Leaves out list numbering and the URLs behind link texts,
 * because mail programs generate one of the two texts from the other.
 */
export function lettersOf(text: string): string {
  return text
    .replace(NUMBERING, "")
    .replace(LINK, "")
    .replace(PICTURE, "")
    .replace(/[^\p{L}\p{N}]+/gu, "")
    .toLowerCase();
}

/** Returns the index in a line of each of its `lettersOf`. */
function placesOfLetters(line: string): number[] {
  const blank = (found: string): string => " ".repeat(found.length);
  const text = line.replace(NUMBERING, blank).replace(LINK, blank).replace(PICTURE, blank);
  return [...text.matchAll(/[\p{L}\p{N}]/gu)].flatMap(({ 0: letter, index }) =>
    Array.from({ length: letter.toLowerCase().length }, () => index),
  );
}

function saysSomething(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}

/** Returns all URLs and mail addresses of a text, in brackets or not; also other words with a full stop inside. */
function addressesIn(text: string): string[] {
  return text
    .split(/[\s<>]+/)
    .filter((word) => /[.@]/.test(word))
    .map(bareAddress);
}
