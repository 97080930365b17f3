import { attributionAt, isDated } from "./attribution.ts";
import { readClearSigned } from "./clear-signed.ts";
import { SEPARATORS, stripHiddenCharacters } from "./hidden-characters.ts";
import { unmarked } from "./inserted.ts";
import { joined, ownOf, type Piece, piecesOf } from "./pieces.ts";
import { mayBePart, mayBeWrapped, noteSources, withPlainMarks } from "./marker-lines.ts";
import { doubtAt, type Doubtful, doubtfulIf } from "./reply-doubt.ts";
import { firstMarker, isOfProgram, isBareMark, isQuoted, type Marker, opensNote } from "./reply-markers.ts";

/**
 * Limits of own text: nobody writes a longer instruction in a mail, and what exceeds it is content. They also bound the
 * search for markers.
 */
const MAX_OWN_LINES = 2_000;
const MAX_OWN_CHARS = 64 * 1024;
/** A longer "signature" is taken for content: somebody wrote below a line of dashes. */
const MAX_SIGNATURE_LINES = 20;
const MAX_SIGNATURE_CHARS = 2_000;
/** A line whose first word is short and no URL; otherwise it could be the rest of a broken line. */
const WORDS = /^[^\s:/_=]{1,30}(\s|$)/;
/** Replaces a line that shows nothing and is not empty. */
const NOT_EMPTY = "x";
/** Most words of a greeting; more words above a quote are an answer. */
const MAX_GREETING_WORDS = 4;
/** A target, a context, a tag, a macro or a flag, none of which a greeting has. */
const COMMANDS = /(?:^|\s)(?:[@+#$]|--|[–—])\p{L}/u;

interface Reading {
  /** Whether the mail is neither a reply nor a forward. */
  fresh: boolean;
  /** How many empty lines below the text a quote begins, if one does. */
  linesToQuote?: number | null;
}

/** A text cut into the sender's own words and the rest. */
export interface Cut {
  /** In order, none of them empty. */
  pieces: Piece[];
  signature: string;
  /** Whether everything behind the last piece is not the sender's, whatever it looks like. */
  ended: boolean;
  /** Whether own words follow a quote whose end is shown only by the marks (`>`) of its lines. */
  below_marks: boolean;
  /** Text that may be the sender's own nevertheless. */
  doubtful: Doubtful | null;
}

/**
 * Cuts a plain text into own words and the rest. `source` is the text as received, `text` without hidden characters. If
 * inline PGP signs all of it, the signed text is cut, and the armor counts as a signature.
 */
export function cutSigned(source: string, text: string, reading: Reading): Cut {
  const { text: inner, armor, below } = readClearSigned(text);
  if (armor === "") return cutSource(source, text, reading);
  const cut = cutSource(readClearSigned(source).text, inner, reading);
  const pieces = [...cut.pieces, ...piecesOf("", isLong(armor) ? armor : ""), ...piecesOf("", below)];
  return { ...cut, pieces, signature: joined([cut.signature, isLong(armor) ? "" : armor]) };
}

/**
 * Cuts a text in two readings. Some characters that are no line end in mail are one to some programs, whose quotes may
 * begin behind them: own words must be own in both readings.
 */
export function cutSource(source: string, text: string, reading: Reading): Cut {
  const cut = cutText(source, text, reading);
  const lines = source.replaceAll("\r\n", "\n").replaceAll(SEPARATORS, "\n");
  if (source === lines) return cut;
  const first = cut.pieces[0]?.own ? cut.pieces[0].text : "";
  const other = cutText(lines, stripHiddenCharacters(lines).text, reading).pieces[0];
  const own = other?.own ? other.text : "";
  const visible = text.trimStart();
  const length = Math.min(first.length, own.length);
  return {
    pieces: piecesOf(visible.slice(0, length), visible.slice(length)),
    signature: "",
    ended: true,
    below_marks: false,
    doubtful: cut.doubtful,
  };
}

/** The state of cutting: the lines, and these as they are searched, as far as they may be the sender's. */
interface Walk {
  lines: readonly string[];
  head: readonly string[];
  fresh: boolean;
  cut: Cut;
  /** Whether an attribution precedes, by a mail program that marks each quoted line. */
  attributed: boolean;
}

function cutText(source: string, text: string, { fresh, linesToQuote = null }: Reading): Cut {
  const lines = text.split("\n");
  const head = asLookedAt(linesThatMayBeOwn(lines, linesToQuote), source);
  const cut: Cut = { pieces: [], signature: "", ended: false, below_marks: false, doubtful: null };
  const walk: Walk = { lines, head, fresh, cut, attributed: false };
  let from = 0;
  while (from < head.length && !cut.ended) from = cutNext(walk, from);
  if (cut.ended) return cut;
  add(walk, { own: false, from: head.length });
  if (head.length < lines.length) cut.doubtful ??= doubtfulIf("too_long", lines.slice(head.length));
  return { ...cut, ended: head.length < lines.length };
}

/**
 * Returns the lines in the form in which markers are searched; `source` is the text as received, with hidden
 * characters.
 */
function asLookedAt(lines: string[], source: string): string[] {
  // Splits off only the lines needed: the mail may have megabytes.
  const came = source.split(/\r?\n/, lines.length + 1).map(unmarked);
  const head = lines.map((line, at) => {
    const shown = withPlainMarks(unmarked(line).trim());
    return shown === "" && mayBePart(came, at) ? NOT_EMPTY : shown;
  });
  noteSources(head, came);
  return head;
}

/** Returns the line where the sender's own words may go on. */
function cutNext(walk: Walk, from: number): number {
  const marker = firstMarker(walk.head, { from, fresh: walk.fresh });
  add(walk, { own: true, from, end: marker?.line ?? walk.head.length });
  if (marker === null) return walk.head.length;
  return marker.kind === "signature" ? passSignature(walk, marker.line) : passOthers(walk, marker);
}

function passSignature(walk: Walk, line: number): number {
  const { lines, head, fresh, cut } = walk;
  const { signature, end } = signatureAt(lines, head, { line, fresh });
  const is_marked = (lines[line] ?? "").endsWith(" ");
  if (end === line || saysMore(signature, { is_all: cut.pieces.length === 0, is_marked }))
    cut.doubtful ??= doubtfulIf("below_signature", head.slice(line));
  cut.signature = signature;
  cut.ended = true;
  add(walk, { own: false, from: end });
  return end;
}

/**
 * Returns whether a signature says more than who wrote: "Sent from the warehouse: 40 boxes", text below "Sent from my
 * phone" with none above it, or a sentence below two dashes that no mail program wrote (theirs have a trailing space).
 */
function saysMore(
  signature: string,
  { is_all, is_marked }: { is_all: boolean; is_marked: boolean },
): boolean {
  const lines = signature.split("\n");
  const [first = "", ...below] = lines;
  if (opensNote(lines, 0)) return false;
  if (!/\p{L}/u.test(first)) return !is_marked && below.some(isSentence);
  return /[:：](\s|$)/.test(first) || (is_all && below.some((line) => /\p{L}/u.test(line)));
}

/** Returns whether a line ends like a sentence, or begins in the middle of one, and is no program's. */
function isSentence(line: string): boolean {
  const text = line.trim();
  return text.split(/\s+/).length > 2 && /^\p{Ll}|[.!?]$/u.test(text) && !isOfProgram(line);
}

/** Returns whether a signature contains a sentence besides who somebody is. */
export function holdsSentence(signature: string): boolean {
  return signature.split("\n").some(isSentence);
}

function passOthers(walk: Walk, marker: Exclude<Marker, { kind: "signature" }>): number {
  const { lines, head, fresh, cut } = walk;
  const goesOn = marker.kind === "quote" && mayGoOn(cut.pieces, marker);
  walk.attributed ||= marker.kind === "quote" && marker.attributed;
  const next = goesOn ? endOfQuote(walk, marker.quote) : null;
  const empty = cut.pieces.every(({ own }) => !own);
  cut.doubtful ??= doubtAt(head, marker, { end: next ?? head.length, empty, fresh });
  cut.ended = next === null;
  add(walk, { own: false, from: marker.line, end: next ?? lines.length });
  return next ?? lines.length;
}

function add({ lines, cut }: Walk, { own, from, end }: { own: boolean; from: number; end?: number }): void {
  const text = lines.slice(from, end).join("\n").trim();
  if (text === "") return;
  cut.below_marks ||= own && cut.pieces.some((piece) => !piece.own);
  cut.pieces.push({ own, text });
}

/** Returns whether own words may follow a quote: the sender has answered above it and the quote names its author. */
function mayGoOn(pieces: Piece[], { attributed }: { attributed: boolean }): boolean {
  const above = ownOf(pieces);
  return !attributed || (isGreeting(above) && !COMMANDS.test(above));
}

/** Returns whether a text is only a greeting, as people write above a quote that they answer below. */
export function isGreeting(text: string): boolean {
  const words = text.split(/\s+/, MAX_GREETING_WORDS + 2).filter((word) => word !== "");
  return words.length <= MAX_GREETING_WORDS;
}

/**
 * Returns the first line behind a quote with marked lines; null where that is unclear. Mail programs break marked
 * lines, links above all, and leave their rests unmarked. So the quote ends only at an empty line, or at a line that no
 * program would have broken off there.
 */
function endOfQuote({ head, attributed }: Walk, quote: number): number | null {
  if (!mayEnd(head[quote] ?? "")) return null;
  const below = head.findIndex((text, line) => {
    if (line <= quote || text === "" || isQuoted(text)) return false;
    return mayEndAbove(head, line, attributed);
  });
  if (below === -1) return head.length;
  const last = head.slice(quote, below).findLast((text) => isQuoted(text) && !isBareMark(text));
  return namesAuthor(last ?? "") ? null : below;
}

/**
 * Returns whether a mark may end a quote. Bars do not: they also surround header fields that a program has put in a
 * table.
 */
function mayEnd(marked: string): boolean {
  return isQuoted(marked) && !/^[|¦│┃]/.test(marked);
}

/**
 * Returns whether a marked line is an attribution, such as GroupWise's ">>> Eve <eve@example.com> 5/3/2024 10:00 >>>":
 * the quoted text above it may be unmarked, and is no answer.
 */
function namesAuthor(line: string): boolean {
  const text = line.replace(/^[>\s]+/, "");
  if (text.endsWith(">>") && isDated(text.toLowerCase())) return true;
  return attributionAt([text], 0, { top: 0, fresh: false }) !== null;
}

function mayEndAbove(head: readonly string[], at: number, attributed: boolean): boolean {
  const [last = "", line = ""] = [head[at - 1], head[at]];
  if (last === "") return true;
  if (!isQuoted(last) || !WORDS.test(line)) return false;
  if (isBareMark(last)) return line.includes(" ");
  return attributed && last.startsWith(">") && !mayBeWrapped(head, at);
}

/** Returns the signature that begins at `line` with two dashes, and the line behind it; undefined for a long one. */
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

/** Returns the lines as far as they may be the sender's own, with a mark where the quote begins. */
function linesThatMayBeOwn(lines: string[], linesToQuote: number | null): string[] {
  let chars = 0;
  const end = lines.findIndex((line, index) => {
    chars += line.length;
    return index >= MAX_OWN_LINES || chars > MAX_OWN_CHARS;
  });
  if (end !== -1) return lines.slice(0, end);
  return linesToQuote === null ? lines : [...lines, ...(linesToQuote > 0 ? [""] : []), ">"];
}

/** Returns whether a text is too long for a signature. */
export function isLong(signature: string): boolean {
  return signature.length > MAX_SIGNATURE_CHARS || signature.trim().split("\n").length > MAX_SIGNATURE_LINES;
}
