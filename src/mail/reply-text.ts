import { readClearSigned } from "./clear-signed.ts";
import { SEPARATORS, stripHiddenCharacters } from "./hidden-characters.ts";
import { type HtmlText, readHtml } from "./html-text.ts";
import { unmarked } from "./inserted.ts";
import { type Doubt, doubtAt, type Doubtful, doubtfulIf, sharesLine } from "./reply-doubt.ts";
import { firstMarker, isBareMark, isQuoted } from "./reply-markers.ts";
import { lettersOf, ownInBoth, type Piece, piecesOf, withoutInserted } from "./two-texts.ts";

/** Nobody writes a longer instruction into a mail; what exceeds it is content. Bounds the search for markers too. */
const MAX_OWN_LINES = 2_000;
const MAX_OWN_CHARS = 64 * 1024;
/** A longer "signature" is taken for content: somebody wrote below a line of dashes. */
const MAX_SIGNATURE_LINES = 20;
const MAX_SIGNATURE_CHARS = 2_000;
/** Several words, of which the first is no address, as that would be the end of a broken line. */
const WORDS = /^[^\s:/_=]+\s+[^\s]/;
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
  /** Why some of the rest may be the sender's own all the same; null where nothing speaks for that. */
  in_doubt: Doubt | null;
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

interface Cut {
  /** In their order, none of them empty. */
  pieces: Piece[];
  signature: string;
  /** Whether what is behind the last piece is not the sender's own, whatever it looks like. */
  ended: boolean;
  /** Words that may be the sender's own all the same. */
  doubtful: Doubtful | null;
}

/**
 * Only `new_text` may ever be obeyed, so whatever is in doubt goes to `rest_text`. With both variants of a mail the
 * plain text is what is read, and of it only those words are the sender's own that the HTML shows as such too. `fresh`:
 * the mail answers and passes on none.
 */
export function splitNewText(
  body: { text?: string | undefined; html?: string | readonly string[] | undefined },
  { fresh = false }: { fresh?: boolean } = {},
): SplitText {
  const source = unmarked(body.text ?? "");
  const text = stripHiddenCharacters(source);
  const cut = cutSigned(source, text.text, { fresh });
  const beside_text = text.text.trim() !== "";
  const html = cutHtml(readPages([body.html ?? []].flat(), { fresh, beside_text }), fresh);
  const hidden = { hidden_characters: Math.max(text.removed, html.removed), hidden_html: html.hidden };
  if (isBlank(html)) {
    const whole = isAllOwn(cut.pieces) && html.hidden === 0;
    return { ...splitOf(cut), whole, in_doubt: cut.doubtful?.why ?? null, ...hidden };
  }
  const parted = html.pieces.flatMap(withoutInserted);
  const plain = isAllOwn(parted) && html.hidden === 0;
  if (!beside_text) {
    const in_doubt = html.doubtful?.why ?? null;
    return { ...splitOf({ ...html, pieces: parted }), whole: plain, in_doubt, ...hidden };
  }
  const shared = ownInBoth(cut.pieces, ownOf(html.pieces));
  const shown = unmarked(textOf(html.pieces));
  const isStub = lettersOf(text.text).length * 2 < lettersOf(shown).length;
  const pieces = isStub ? [...shared, { own: false, text: shown }] : shared;
  const whole = plain && isAllOwn(shared) && lettersOf(ownOf(cut.pieces)) === lettersOf(ownOf(html.pieces));
  const in_doubt = doubtOfTwo(cut, html, shared);
  return { ...splitOf({ pieces, signature: cut.signature }), whole, in_doubt, ...hidden };
}

/** A mail program shows nothing of it. */
function isBlank({ pieces, signature }: Cut): boolean {
  return lettersOf(`${textOf(pieces)} ${signature}`) === "";
}

/** Words that are in doubt in the text have to be the sender's own in the HTML, whose signature and cards are known. */
function doubtOfTwo(cut: Cut, html: HtmlCut, shared: Piece[]): Doubt | null {
  const known = lettersOf(unmarked(`${html.own}\n${html.signature}`));
  const lost = shared.filter((piece) => !piece.own && !cut.pieces.includes(piece));
  if (lost.some(({ text }) => saysMoreThan(known, text))) return "two_texts";
  const own = lettersOf(unmarked(html.own));
  return cut.doubtful && sharesLine(own, cut.doubtful.text) ? cut.doubtful.why : null;
}

function saysMoreThan(letters: string, text: string): boolean {
  return text.split("\n").some((line) => !letters.includes(lettersOf(line)));
}

/** All that can be read of an HTML part, for parts that are content anyway. */
export function readableHtml(html: string): { text: string; hidden_characters: number; hidden_html: number } {
  const { pieces, signature, hidden } = readHtml(html);
  const own = pieces.filter((piece) => piece.own).map(({ text }) => unmarked(text));
  const rest = pieces.filter((piece) => !piece.own).map(({ text }) => text);
  const clean = stripHiddenCharacters(joined([...own, signature, ...rest]));
  return { text: clean.text, hidden_characters: clean.removed, hidden_html: hidden };
}

/** Pages of one author, one below the other: behind what is not the sender's own in one, nothing of the others is. */
function readPages(pages: readonly string[], reading: { fresh: boolean; beside_text: boolean }): HtmlText {
  const all: HtmlText = { pieces: [], signature: "", hidden: 0 };
  for (const page of pages) {
    const { pieces, signature, hidden } = readHtml(page, reading);
    const last = all.pieces.at(-1);
    const own = all.signature === "" && all.pieces.every((piece) => piece.own);
    const [first, ...others] = pieces.map((piece) => ({ ...piece, own: piece.own && own }));
    if (first?.own && last) all.pieces[0] = { ...first, text: joined([last.text, first.text]) };
    else if (first) all.pieces.push(first);
    all.pieces.push(...others);
    all.signature = joined([all.signature, signature]);
    all.hidden += hidden;
  }
  return all;
}

function splitOf({
  pieces,
  signature,
}: Pick<Cut, "pieces" | "signature">): Pick<
  SplitText,
  "new_text" | "rest_text" | "signature" | "interleaved"
> {
  const quote = pieces.findIndex(({ own }) => !own);
  const answers = quote !== -1 && pieces.slice(quote).some(({ own }) => own);
  const interleaved = answers || pieces.some(({ shown }) => shown !== undefined);
  const rest = interleaved
    ? pieces.map(({ own, text, shown }) => {
        if (shown !== undefined) return `[The sender's mail shows here:]\n${shown}`;
        return own ? `[The sender wrote here:]\n${text}` : text;
      })
    : pieces.filter(({ own }) => !own).map(({ text }) => text);
  return { new_text: ownOf(pieces), rest_text: joined(rest), signature, interleaved };
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

interface HtmlCut extends Cut {
  /** All that stands outside of what mail programs wrap a quote in. */
  own: string;
  removed: number;
  hidden: number;
}

/** Own pieces keep their marks around what may be inserted. */
function cutHtml(html: HtmlText, fresh: boolean): HtmlCut {
  const all: Cut = { pieces: [], signature: "", ended: false, doubtful: null };
  const signatures = [html.signature];
  let removed = 0;
  for (const { own, text, lines_to_quote } of html.pieces) {
    const shown = stripHiddenCharacters(text);
    removed += shown.removed;
    if (!own || all.ended) {
      all.pieces.push({ own: false, text: shown.text });
      if (own) all.doubtful ??= doubtfulIf("below_quote", [unmarked(shown.text)]);
      continue;
    }
    const cut = cutSource(text, shown.text, { fresh, linesToQuote: lines_to_quote });
    all.pieces.push(...cut.pieces);
    // Whom the first quote is from may stand inside it.
    all.ended = cut.ended || (isAllOwn(all.pieces) && wordsOf(ownOf(all.pieces)) > MAX_GREETING_WORDS);
    all.doubtful ??= cut.doubtful;
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
    own: joined(html.pieces.filter(({ own }) => own).map(({ text }) => text)),
    removed,
    hidden: html.hidden,
  };
}

/** Of a text that inline PGP signs as a whole, what is inside; its armor is a signature. */
function cutSigned(source: string, text: string, reading: Reading): Cut {
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
    doubtful: cut.doubtful,
  };
}

/** `ended` where a mark was found behind which nothing can be told apart any more. */
function cutText(text: string, { fresh, linesToQuote = null }: Reading): Cut {
  const lines = text.split("\n");
  const head = linesThatMayBeOwn(lines, linesToQuote).map((line) => unmarked(line).trim());
  const cut: Cut = { pieces: [], signature: "", ended: false, doubtful: null };
  const add = (own: boolean, from: number, end?: number): void => {
    const piece = joined([lines.slice(from, end).join("\n")]);
    if (piece !== "") cut.pieces.push({ own, text: piece });
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
      const tells = cut.pieces.length === 0 && /[:：](\s|$)/.test(head[line] ?? "");
      if (end === line || tells) cut.doubtful ??= doubtfulIf("below_signature", head.slice(line));
      return { ...cut, signature, ended: true };
    }
    const empty = isEmpty(cut.pieces);
    const goesOn = marker.kind === "quote" && mayGoOn(cut.pieces, marker);
    const next = goesOn ? endOfQuote(head, marker.quote) : null;
    cut.doubtful ??= doubtAt(head, marker, { end: next ?? head.length, empty, fresh });
    add(false, line, next ?? lines.length);
    if (next === null) return { ...cut, ended: true };
    from = next;
  }
  add(false, head.length);
  if (head.length < lines.length) cut.doubtful ??= doubtfulIf("too_long", lines.slice(head.length));
  return { ...cut, ended: head.length < lines.length };
}

function isEmpty(pieces: Piece[]): boolean {
  return pieces.every(({ own }) => !own);
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

function isLong(signature: string): boolean {
  return signature.length > MAX_SIGNATURE_CHARS || signature.trim().split("\n").length > MAX_SIGNATURE_LINES;
}

function joined(parts: string[]): string {
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n");
}
