import { readClearSigned } from "./clear-signed.ts";
import { SEPARATORS, stripHiddenCharacters } from "./hidden-characters.ts";
import { unmarked } from "./inserted.ts";
import { joined, ownOf, type Piece, piecesOf } from "./pieces.ts";
import { doubtAt, type Doubtful, doubtfulIf } from "./reply-doubt.ts";
import { firstMarker, isBareMark, isQuoted, type Marker } from "./reply-markers.ts";

/** Nobody writes a longer instruction into a mail; what exceeds it is content. Bounds the search for markers too. */
const MAX_OWN_LINES = 2_000;
const MAX_OWN_CHARS = 64 * 1024;
/** A longer "signature" is taken for content: somebody wrote below a line of dashes. */
const MAX_SIGNATURE_LINES = 20;
const MAX_SIGNATURE_CHARS = 2_000;
/** Several words, of which the first is no address and not long, as it would be the end of a broken line. */
const WORDS = /^[^\s:/_=]{1,30}\s+[^\s]/;
/** Who writes more than a greeting above a quote answers there. */
const MAX_GREETING_WORDS = 4;

interface Reading {
  /** Whether the mail answers and passes on none. */
  fresh: boolean;
  /** How many empty lines below the text a quote begins, if one does. */
  linesToQuote?: number | null;
}

/** A text cut into the sender's own words and the rest. */
export interface Cut {
  /** In their order, none of them empty. */
  pieces: Piece[];
  signature: string;
  /** Whether what is behind the last piece is not the sender's own, whatever it looks like. */
  ended: boolean;
  /** Words that may be the sender's own all the same. */
  doubtful: Doubtful | null;
}

/**
 * Cuts a plain text: `source` as it came, `text` without hidden characters. Where inline PGP signs it as a whole, what is
 * inside is cut, and its armor is a signature.
 */
export function cutSigned(source: string, text: string, reading: Reading): Cut {
  const { text: inner, armor, below } = readClearSigned(text);
  if (armor === "") return cutSource(source, text, reading);
  const cut = cutSource(readClearSigned(source).text, inner, reading);
  const pieces = [...cut.pieces, ...piecesOf("", isLong(armor) ? armor : ""), ...piecesOf("", below)];
  return { ...cut, pieces, signature: joined([cut.signature, isLong(armor) ? "" : armor]) };
}

/**
 * A separator that is no line end in mail is one to some programs, and their quotes may begin behind it: what is the
 * sender's own must be so in both readings.
 */
export function cutSource(source: string, text: string, reading: Reading): Cut {
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
    doubtful: cut.doubtful,
  };
}

/** A text while it is cut: its lines, and as they are looked at, as far as they may be the sender's own. */
interface Walk {
  lines: readonly string[];
  head: readonly string[];
  fresh: boolean;
  cut: Cut;
}

function cutText(text: string, { fresh, linesToQuote = null }: Reading): Cut {
  const lines = text.split("\n");
  const head = linesThatMayBeOwn(lines, linesToQuote).map((line) => unmarked(line).trim());
  const cut: Cut = { pieces: [], signature: "", ended: false, doubtful: null };
  const walk: Walk = { lines, head, fresh, cut };
  let from = 0;
  while (from < head.length && !cut.ended) from = cutNext(walk, from);
  if (cut.ended) return cut;
  add(walk, { own: false, from: head.length });
  if (head.length < lines.length) cut.doubtful ??= doubtfulIf("too_long", lines.slice(head.length));
  return { ...cut, ended: head.length < lines.length };
}

/** Returns the line where the sender's own words may go on. */
function cutNext(walk: Walk, from: number): number {
  const marker = firstMarker(walk.head, { from, fresh: walk.fresh });
  add(walk, { own: true, from, end: marker?.line ?? walk.head.length });
  if (marker === null) return walk.head.length;
  return marker.kind === "signature" ? passSignature(walk, marker.line) : passOthers(walk, marker);
}

function passSignature({ lines, head, fresh, cut }: Walk, line: number): number {
  const tells = cut.pieces.length === 0 && /[:：](\s|$)/.test(head[line] ?? "");
  const { signature, end } = signatureAt(lines, head, { line, fresh });
  if (end === line || tells) cut.doubtful ??= doubtfulIf("below_signature", head.slice(line));
  cut.signature = signature;
  cut.ended = true;
  add({ lines, head, fresh, cut }, { own: false, from: end });
  return end;
}

function passOthers(walk: Walk, marker: Exclude<Marker, { kind: "signature" }>): number {
  const { lines, head, fresh, cut } = walk;
  const goesOn = marker.kind === "quote" && mayGoOn(cut.pieces, marker);
  const next = goesOn ? endOfQuote(head, marker.quote) : null;
  const empty = cut.pieces.every(({ own }) => !own);
  cut.doubtful ??= doubtAt(head, marker, { end: next ?? head.length, empty, fresh });
  cut.ended = next === null;
  add(walk, { own: false, from: marker.line, end: next ?? lines.length });
  return next ?? lines.length;
}

function add({ lines, cut }: Walk, { own, from, end }: { own: boolean; from: number; end?: number }): void {
  const text = lines.slice(from, end).join("\n").trim();
  if (text !== "") cut.pieces.push({ own, text });
}

/** Whether own words may stand below a quote: who has answered above one that names its author has done so there. */
function mayGoOn(pieces: Piece[], { attributed }: { attributed: boolean }): boolean {
  return !attributed || isGreeting(ownOf(pieces));
}

/** Whether a text is no more than what people write above a quote that they answer below. */
export function isGreeting(text: string): boolean {
  const words = text.split(/\s+/, MAX_GREETING_WORDS + 2).filter((word) => word !== "");
  return words.length <= MAX_GREETING_WORDS;
}

/**
 * The line behind a quote whose lines are marked, or null where that cannot be told. Mail programs break marked lines, links
 * above all, and leave their ends unmarked, so only what an empty line parts from the quote is behind it, marked or not.
 */
function endOfQuote(head: readonly string[], quote: number): number | null {
  if (!isQuoted(head[quote] ?? "")) return null;
  for (let line = quote + 1; line < head.length; line += 1) {
    const text = head[line] ?? "";
    if (text !== "" && !isQuoted(text) && mayEndAbove(head[line - 1] ?? "", text)) return line;
  }
  return head.length;
}

function mayEndAbove(last: string, line: string): boolean {
  return last === "" || (isBareMark(last) && WORDS.test(line));
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

/** Whether it is too long for a signature. */
export function isLong(signature: string): boolean {
  return signature.length > MAX_SIGNATURE_CHARS || signature.trim().split("\n").length > MAX_SIGNATURE_LINES;
}
