import { SEPARATORS, stripHiddenCharacters } from "./hidden-characters.ts";
import { type HtmlText, readHtml } from "./html-text.ts";
import { bareAddress, isMarked, partsByMark, unmarked, withoutMarked } from "./inserted.ts";
import { firstMarker, isQuoted } from "./reply-markers.ts";

/** Nobody writes a longer instruction into a mail; what exceeds it is content. Bounds the search for markers too. */
const MAX_OWN_LINES = 2_000;
const MAX_OWN_CHARS = 64 * 1024;
/** A longer "signature" is taken for content: somebody wrote below a line of dashes. */
const MAX_SIGNATURE_LINES = 20;
const MAX_SIGNATURE_CHARS = 2_000;
/** Letters the HTML may show between two lines of the plain text, such as the words of a picture. */
const MAX_GAP_CHARS = 200;
/** Letters of one card, or of what else a mail program inserted, that the plain text may leave out. */
const MAX_INSERTED_CHARS = 2_000;
/** Who writes more than a greeting above a quote answers there. */
const MAX_GREETING_WORDS = 4;

export interface SplitText {
  /** The sender's own words: above the first quote, forward or signature, and below quotes that end without doubt. */
  new_text: string;
  /** All the rest but the signature; with the sender's words among it if `interleaved`. */
  rest_text: string;
  /** A short one, or what a mail program says of itself. */
  signature: string;
  /** Whether own words stand below a quote, and so answer it, or around what a mail program may have inserted. */
  interleaved: boolean;
  /** Whether the own words are all there is but for a signature, in each variant of the mail. */
  whole: boolean;
  hidden_characters: number;
  /** Hidden elements and comments of the HTML whose words were left out. */
  hidden_html: number;
}

interface Reading {
  /** Whether the mail answers and passes on none. */
  fresh: boolean;
  /** How many empty lines below the text a quote begins, if one does. */
  linesToQuote?: number | null;
}

interface Piece {
  own: boolean;
  text: string;
  /** Where a mail program may have put words between own ones: all of them, as the mail shows them. */
  shown?: string;
}

interface Cut {
  /** In their order, none of them empty. */
  pieces: Piece[];
  signature: string;
  /** Whether what is behind the last piece is not the sender's own, whatever it looks like. */
  ended: boolean;
}

/**
 * Only `new_text` may ever be obeyed, so whatever is in doubt goes to `rest_text`. With both variants of a mail the
 * plain text is what is read, and a line of it is the sender's own only if the HTML shows it as such too. `fresh`: the
 * mail answers and passes on none.
 */
export function splitNewText(
  body: { text?: string | undefined; html?: string | undefined },
  { fresh = false }: { fresh?: boolean } = {},
): SplitText {
  const source = unmarked(body.text ?? "");
  const text = stripHiddenCharacters(source);
  const cut = cutSource(source, text.text, { fresh });
  if (body.html === undefined || body.html.trim() === "") {
    const counts = { hidden_characters: text.removed, hidden_html: 0 };
    return { ...splitOf(cut.pieces), signature: cut.signature, whole: isAllOwn(cut.pieces), ...counts };
  }
  const html = cutHtml(readHtml(body.html, { fresh }), fresh);
  const hidden = { hidden_characters: Math.max(text.removed, html.removed), hidden_html: html.hidden };
  const parted = html.pieces.flatMap(withoutInserted);
  const plain = isAllOwn(parted) && html.hidden === 0;
  if (text.text.trim() === "")
    return { ...splitOf(parted), signature: html.signature, whole: plain, ...hidden };

  const shared = ownInBoth(cut.pieces, shownBy(html.pieces));
  const shown = unmarked(textOf(html.pieces));
  const isStub = lettersOf(text.text).length * 2 < lettersOf(shown).length;
  const pieces = isStub ? [...shared, { own: false, text: shown }] : shared;
  const whole = plain && isAllOwn(shared) && lettersOf(ownOf(cut.pieces)) === lettersOf(ownOf(html.pieces));
  return { ...splitOf(pieces), signature: cut.signature, whole, ...hidden };
}

/** All that can be read of an HTML part, for parts that are content anyway. */
export function readableHtml(html: string): { text: string; hidden_characters: number; hidden_html: number } {
  const { pieces, signature, hidden } = readHtml(html);
  const own = pieces.filter((piece) => piece.own).map(({ text }) => unmarked(text));
  const rest = pieces.filter((piece) => !piece.own).map(({ text }) => text);
  const clean = stripHiddenCharacters(joined([...own, signature, ...rest]));
  return { text: clean.text, hidden_characters: clean.removed, hidden_html: hidden };
}

function splitOf(pieces: Piece[]): Pick<SplitText, "new_text" | "rest_text" | "interleaved"> {
  const quote = pieces.findIndex(({ own }) => !own);
  const answers = quote !== -1 && pieces.slice(quote).some(({ own }) => own);
  const interleaved = answers || pieces.some(({ shown }) => shown !== undefined);
  const rest = interleaved
    ? pieces.map(({ own, text, shown }) => {
        if (shown !== undefined) return `[The sender's mail shows here:]\n${shown}`;
        return own ? `[The sender wrote here:]\n${text}` : text;
      })
    : pieces.filter(({ own }) => !own).map(({ text }) => text);
  return { new_text: ownOf(pieces), rest_text: joined(rest), interleaved };
}

function ownOf(pieces: Piece[]): string {
  return joined(pieces.filter(({ own }) => own).map(({ text }) => text));
}

function textOf(pieces: Piece[]): string {
  return joined(pieces.map(({ text }) => text));
}

function isAllOwn(pieces: Piece[]): boolean {
  return pieces.every(({ own, shown }) => own && shown === undefined);
}

/** Own pieces keep their marks around what may be inserted. */
function cutHtml(html: HtmlText, fresh: boolean): Cut & { removed: number; hidden: number } {
  const all: Cut = { pieces: [], signature: "", ended: false };
  const signatures = [html.signature];
  let removed = 0;
  for (const { own, text, lines_to_quote } of html.pieces) {
    const shown = stripHiddenCharacters(text);
    removed += shown.removed;
    if (!own || all.ended) {
      all.pieces.push({ own: false, text: shown.text });
      continue;
    }
    const cut = cutSource(text, shown.text, { fresh, linesToQuote: lines_to_quote });
    all.pieces.push(...cut.pieces);
    // Whom the first quote is from may stand inside it.
    all.ended = cut.ended || (isAllOwn(all.pieces) && wordsOf(ownOf(all.pieces)) > MAX_GREETING_WORDS);
    signatures.push(cut.signature);
  }
  const signature = joined(signatures.map((one) => stripHiddenCharacters(unmarked(one)).text));
  if (isLong(signature)) all.pieces.push({ own: false, text: signature });
  return {
    ...all,
    signature: isLong(signature) ? "" : signature,
    pieces: all.pieces
      .map(({ own, text }) => ({ own, text: own ? text : unmarked(text) }))
      .filter(({ text }) => text.trim() !== ""),
    removed,
    hidden: html.hidden,
  };
}

/**
 * A separator that is no line end in mail is one to some programs, and their quotes may begin behind it: what is the
 * sender's own must be so in both readings.
 */
function cutSource(source: string, text: string, reading: Reading): Cut {
  const cut = cutText(text, reading);
  const lines = source.replaceAll("\r\n", "\n").replaceAll(SEPARATORS, "\n");
  if (source === lines) return cut;
  const first = cut.pieces[0]?.own ? cut.pieces[0].text : "";
  const other = cutText(stripHiddenCharacters(lines).text, reading).pieces[0];
  const own = other?.own ? other.text : "";
  const visible = text.trimStart();
  const length = Math.min(first.length, own.length);
  return {
    pieces: piecesOf(visible.slice(0, length), visible.slice(length)),
    signature: "",
    ended: true,
  };
}

function piecesOf(own: string, rest: string): Piece[] {
  return [
    { own: true, text: own.trim() },
    { own: false, text: rest.trim() },
  ].filter(({ text }) => text !== "");
}

/** `ended` where a mark was found behind which nothing can be told apart any more. */
function cutText(text: string, { fresh, linesToQuote = null }: Reading): Cut {
  const lines = text.split("\n");
  const head = linesThatMayBeOwn(lines, linesToQuote).map((line) => unmarked(line).trim());
  const pieces: Piece[] = [];
  const add = (own: boolean, from: number, end?: number): void => {
    const piece = joined([lines.slice(from, end).join("\n")]);
    if (piece !== "") pieces.push({ own, text: piece });
  };
  let from = 0;
  while (from < head.length) {
    const marker = firstMarker(head, { from, fresh });
    const line = marker?.line ?? head.length;
    add(true, from, line);
    if (marker === null) break;
    if (marker.kind === "signature") {
      const { signature, end } = signatureAt(lines, head, { line, fresh });
      add(false, end);
      return { pieces, signature, ended: true };
    }
    const next = marker.kind === "quote" && mayGoOn(pieces, marker) ? endOfQuote(head, marker.quote) : null;
    add(false, line, next ?? lines.length);
    if (next === null) return { pieces, signature: "", ended: true };
    from = next;
  }
  add(false, head.length);
  return { pieces, signature: "", ended: head.length < lines.length };
}

/** Whether own words may stand below a quote: who has answered above one that names its author has done so there. */
function mayGoOn(pieces: Piece[], { attributed }: { attributed: boolean }): boolean {
  return !attributed || wordsOf(ownOf(pieces)) <= MAX_GREETING_WORDS;
}

function wordsOf(text: string): number {
  return text.split(/\s+/, MAX_GREETING_WORDS + 2).filter((word) => word !== "").length;
}

/**
 * The line behind a quote whose lines are marked, or null where that cannot be told. Mail programs break marked lines, links
 * above all, and leave their ends unmarked, so only what an empty line parts from the quote is behind it.
 */
function endOfQuote(head: readonly string[], quote: number): number | null {
  if (!isQuoted(head[quote] ?? "")) return null;
  for (let line = quote + 1; line < head.length; line += 1) {
    const text = head[line] ?? "";
    if (text !== "" && !isQuoted(text) && head[line - 1] === "") return line;
  }
  return head.length;
}

/** What begins at `line` with two dashes, and the line behind it. A long one is none. */
function signatureAt(
  lines: readonly string[],
  head: readonly string[],
  { line, fresh }: { line: number; fresh: boolean },
): { signature: string; end: number } {
  let next = firstMarker(head, { from: line + 1, fresh });
  while (next?.kind === "signature") next = firstMarker(head, { from: next.line + 1, fresh });
  const end = next?.line ?? lines.length;
  const signature = lines.slice(line, end).join("\n").trim();
  return isLong(signature) ? { signature: "", end: line } : { signature, end };
}

/** With a line in place of the quote, for what to look at above it. */
function linesThatMayBeOwn(lines: string[], linesToQuote: number | null): string[] {
  let chars = 0;
  const end = lines.findIndex((line, index) => {
    chars += line.length;
    return index >= MAX_OWN_LINES || chars > MAX_OWN_CHARS;
  });
  if (end !== -1) return lines.slice(0, end);
  return linesToQuote === null ? lines : [...lines, ...(linesToQuote > 0 ? [""] : []), ">"];
}

function isLong(signature: string): boolean {
  return signature.length > MAX_SIGNATURE_CHARS || signature.trim().split("\n").length > MAX_SIGNATURE_LINES;
}

interface Line {
  shown: string;
  /** What of it is the sender's own; null where nothing is. */
  own: string | null;
}

/** What is inserted at the end of a piece is a piece of its own; what is between own words is shown with them. */
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

/** The pieces of the HTML, parted from what is marked in them. */
function withoutInserted(piece: Piece): Piece[] {
  if (!piece.own || !isMarked(piece.text)) return [piece];
  const lines = piece.text.split("\n").map((line) => {
    const shown = unmarked(line);
    if (!isMarked(line)) return { shown, own: shown };
    const own = withoutMarked(line).trim();
    return { shown, own: saysSomething(own) ? own : null };
  });
  return partLines(lines);
}

/** The own pieces of the HTML, by their letters. */
interface Shown {
  letters: string;
  /** Where in these what may be inserted begins and ends. */
  inserted: { from: number; to: number }[];
  addresses: Set<string>;
}

function shownBy(pieces: Piece[]): Shown {
  const shown: Shown = { letters: "", inserted: [], addresses: new Set() };
  const found: string[] = [];
  let length = 0;
  for (const part of partsByMark(ownOf(pieces))) {
    const letters = lettersOf(part.text).slice(0, part.inserted ? MAX_INSERTED_CHARS : undefined);
    if (part.inserted && letters !== "") shown.inserted.push({ from: length, to: length + letters.length });
    if (!part.inserted) for (const address of addressesIn(part.text)) shown.addresses.add(address);
    found.push(letters);
    length += letters.length;
  }
  return { ...shown, letters: found.join("") };
}

/**
 * The pieces of the plain text, of which only those words are the sender's own that the HTML shows as such too, in the same
 * order. Typography, numbering and, beside own words, links are free.
 */
function ownInBoth(pieces: Piece[], shown: Shown): Piece[] {
  const gap = MAX_GAP_CHARS + (shown.inserted.length > 0 ? MAX_INSERTED_CHARS : 0);
  let searched = 0;
  let passed = 0;
  const ownIn = (line: string): string | null => {
    const wanted = lettersOf(line);
    const at = shown.letters.slice(searched, searched + wanted.length + gap).indexOf(wanted);
    if (at === -1) return shown.addresses.has(bareAddress(line)) ? line : null;
    const from = searched + at;
    searched = from + wanted.length;
    const cuts: { from: number; to: number }[] = [];
    for (; passed < shown.inserted.length; passed += 1) {
      const range = shown.inserted[passed];
      if (range === undefined || range.from >= searched) break;
      if (range.to > from && wanted !== "") cuts.push({ from: range.from - from, to: range.to - from });
      if (range.to > searched) break;
    }
    const known = (address: string): boolean => shown.addresses.has(bareAddress(address.slice(1, -1)));
    // What a program inserts may have addresses in it, and may end on a line of the sender's.
    const may_stand = shown.inserted.length === 0 && wanted !== "";
    const own = withoutLetters(line, cuts)
      .replace(PICTURE, "")
      .replace(LINK, (address) => (may_stand || known(address) ? address : ""));
    if (own === line) return line;
    return line.trim() === "" || saysSomething(own) ? own.trimEnd() : null;
  };
  return pieces.flatMap((piece) => {
    if (!piece.own) return [piece];
    return partLines(piece.text.split("\n").map((line) => ({ shown: line, own: ownIn(line) })));
  });
}

/** A sign that belongs to the word beside it. */
const GLUED = /[^\s<>\p{L}\p{N}\p{Cs}]/u;
const ENDS_SENTENCE = /^[.,;:!?)]*$/;

/** Cuts out of a line the letters from one place among its letters to another, with the signs right beside them. */
function withoutLetters(line: string, cuts: { from: number; to: number }[]): string {
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

const NUMBERING = /^[ \t]*\p{Nd}{1,3}[.)](?=\s)/gmu;
const LINK = /<(https?:|mailto:)[^<>\s]*>|<[^<>\s@]+@[^<>\s@]+>/gi;
/** What is said of a picture is not the sender's word. */
const PICTURE = /\[(image|cid|bild):[^[\]\n]{0,200}\]/gi;

/** Neither how a list is numbered nor the address behind a name says anything: one of the two texts was made from the other. */
function lettersOf(text: string): string {
  return text
    .replace(NUMBERING, "")
    .replace(LINK, "")
    .replace(PICTURE, "")
    .replace(/[^\p{L}\p{N}]+/gu, "")
    .toLowerCase();
}

/** Where in a line each of its `lettersOf` stands. */
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

/** All web and mail addresses of a text, in brackets or not; other words with a full stop in them as well. */
function addressesIn(text: string): string[] {
  return text
    .split(/[\s<>]+/)
    .filter((word) => /[.@]/.test(word))
    .map(bareAddress);
}

function joined(parts: string[]): string {
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n");
}
