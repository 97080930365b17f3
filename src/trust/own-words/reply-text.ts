import { type Cut, cutSigned, cutSource, holdsSentence, isGreeting, isLong } from "./cut-text.ts";
import { stripHiddenCharacters } from "./hidden-characters.ts";
import { bareAddress } from "./html-links.ts";
import { type ShownPicture, signaturePictures } from "./html-pictures.ts";
import type { HtmlText } from "./html-region.ts";
import { readHtml } from "./html-text.ts";
import { unmarked } from "./inserted.ts";
import { isAllOwn, joined, ownOf, type Piece, textOf } from "./pieces.ts";
import { type Doubt, doubtfulIf, sharesLine } from "./reply-doubt.ts";
import { isPlaceholder, lettersOf, ownInBoth, withoutInserted } from "./two-texts.ts";

/** Letters of the HTML's own words that are searched for doubtful text. */
const MAX_KNOWN_CHARS = 128 * 1024;

export interface SplitText {
  /** The sender's own words: above the first quote, forward or signature, and below quotes that end without doubt. */
  new_text: string;
  /** Everything else except the signature; with the sender's words in it if `interleaved`. */
  rest_text: string;
  /** A short signature, or a line that a mail program adds about itself. */
  signature: string;
  /** Whether own words follow a quote, and so answer it, or surround text that a mail program may have inserted. */
  interleaved: boolean;
  /** Whether the mail has only own words and maybe a signature, in each of its variants. */
  whole: boolean;
  /**
   * Text separated from own words only by marks in the text: a line of dashes, or a mark before each line. Where others
   * wrote part of the text, they may have written these marks as well.
   */
  marked_off: string;
  /**
   * Whether own words follow a quote whose end is shown only by marks before its lines: a program that marks no lines,
   * or breaks marked ones, can make words of others look like own ones.
   */
  below_marks: boolean;
  /** Why part of the rest may be the sender's own nevertheless; null where nothing suggests that. */
  in_doubt: Doubt | null;
  /** Where the HTML leads or loads something from among the sender's own words, without words that say so. */
  leads: string[];
  /** The Content-IDs of the pictures that are shown in the signature and nowhere else. */
  signature_pictures: string[];
  hidden_characters: number;
  /** Number of hidden elements and comments of the HTML whose text was left out. */
  hidden_html: number;
}

/**
 * Splits a mail's text into the sender's own words and the rest. Only `new_text` may ever be obeyed, so doubtful text
 * goes to `rest_text`. If the mail has plain text and HTML, the plain text is used, and only those words count as own
 * that the HTML shows as own too. `fresh`: the mail is neither reply nor forward.
 */
export function splitNewText(
  body: { text?: string | undefined; html?: string | readonly string[] | undefined },
  { fresh = false }: { fresh?: boolean } = {},
): SplitText {
  const source = unmarked(body.text ?? "");
  const text = stripHiddenCharacters(source);
  const beside_text = text.text.trim() !== "";
  const cut = cutSigned(source, text.text, { fresh });
  const html = cutHtml(readPages([body.html ?? []].flat(), { fresh, beside_text }), fresh);
  const split = isBlank(html) ? splitText(cut, html) : beside_text ? splitBoth(cut, html) : splitHtml(html);
  return {
    ...split,
    leads: html.leads,
    signature_pictures: signaturePictures(html.pictures),
    hidden_characters: Math.max(text.removed, html.removed),
    hidden_html: html.hidden,
  };
}

type Split = Omit<SplitText, "leads" | "signature_pictures" | "hidden_characters" | "hidden_html">;

function splitText(cut: Cut, { hidden }: HtmlCut): Split {
  return {
    ...splitOf(cut),
    whole: isAllOwn(cut.pieces) && hidden === 0 && !saysMoreBelow(cut),
    marked_off: cutOff(cut),
    below_marks: cut.below_marks,
    in_doubt: cut.doubtful?.why ?? null,
  };
}

function splitHtml(html: HtmlCut): Split {
  const pieces = html.pieces.flatMap(withoutInserted);
  return {
    ...splitOf({ ...html, pieces }),
    whole: isAllOwn(pieces) && html.hidden === 0 && !saysMoreBelow(html),
    marked_off: html.marked_off,
    below_marks: html.below_marks,
    in_doubt: html.doubtful?.why ?? null,
  };
}

function splitBoth(cut: Cut, html: HtmlCut): Split {
  // Descriptions of other pictures are material, which is reported.
  const signs = html.pictures.length > 0 && html.pictures.every((picture) => picture.signature);
  const [text, placeholders] = signs ? withoutPlaceholders(cut.pieces) : [cut.pieces, ""];
  const [shared, signature] = withoutSignature(ownInBoth(text, ownOf(html.pieces)), cut, html);
  const shown = unmarked(textOf(html.pieces));
  const is_stub = lettersOf(`${textOf(cut.pieces)} ${cut.signature}`).length * 2 < lettersOf(shown).length;
  const pieces = is_stub ? [...shared, { own: false, text: shown }] : shared;
  const own = ownOf(signature === "" ? cut.pieces : shared);
  const same = lettersOf(own) === lettersOf(ownOf(html.pieces));
  return {
    ...splitOf({ pieces, signature: joined([cut.signature, signature, placeholders]) }),
    whole: same && splitHtml(html).whole && isAllOwn(shared) && !saysMoreBelow(cut),
    marked_off: withoutLines(cutOff(cut), html.wrapped),
    // Own words are own in both variants, and where the HTML wraps a quote, it shows the end.
    below_marks: html.below_marks || (cut.below_marks && isAllOwn(html.pieces)),
    in_doubt: signature !== "" && saysMoreBelow(html) ? "below_signature" : doubtOfTwo(cut, html, shared),
  };
}

/** Splits off lines that are only placeholders of pictures. */
function withoutPlaceholders(pieces: Piece[]): [Piece[], placeholders: string] {
  const linesOf = ({ text }: Piece): string[] => text.split("\n");
  const found = pieces.filter(({ own }) => own).flatMap(linesOf);
  const kept = pieces.map((piece) => {
    if (!piece.own) return piece;
    const lines = linesOf(piece).filter((line) => !isPlaceholder(line));
    return { ...piece, text: lines.join("\n").trim() };
  });
  return [kept.filter(({ text }) => text !== ""), found.filter(isPlaceholder).join("\n")];
}

/** Splits off the end of the text if the HTML marks it as the signature. */
function withoutSignature(pieces: Piece[], cut: Cut, html: HtmlCut): [Piece[], signature: string] {
  const own = pieces.slice(0, pieces.findLastIndex((piece) => piece.own) + 1);
  const last = textOf(pieces.slice(own.length));
  const marked = lettersOf(html.signature.replace(BRACKETED, ""));
  // The HTML may mark a program's line, recognized in the text, together with the signature above it.
  const is_signature = [last, `${last} ${cut.signature}`].some(
    (text) => lettersOf(text.replace(BRACKETED, "")) === marked,
  );
  return last !== "" && html.signature !== "" && is_signature ? [own, last] : [pieces, ""];
}

/** The placeholder of a picture in the text: its description, URL or Content-ID. */
const BRACKETED = /\[[^[\]\n]{1,300}\]/g;

/** Returns whether the signature may be meant to be read. */
function saysMoreBelow({ doubtful }: Cut): boolean {
  return doubtful?.why === "below_signature";
}

function cutOff({ pieces, signature }: Pick<Cut, "pieces" | "signature">): string {
  return joined([...pieces.filter(({ own }) => !own).map(({ text }) => text), signature]);
}

/** Returns a text without lines that are known including their URLs: a line with the same words may lead elsewhere. */
function withoutLines(text: string, known: string): string {
  const lines = new Set(known.split("\n").map(asCompared));
  return text
    .split("\n")
    .filter((line) => !lines.has(asCompared(line)))
    .join("\n");
}

/**
 * Returns a line in a form for comparison: without spacing, and a link `example.org <https://example.org>` reduced to
 * its shown address, because only the plain text of some mail programs repeats the URL.
 */
function asCompared(line: string): string {
  return line
    .replace(/(?<!\S)([^\s<>]+)\s?<([^\s<>]+)>/g, (both, shown: string, href: string) =>
      bareAddress(shown) === bareAddress(href) ? shown : both,
    )
    .replaceAll(/\s+/g, "");
}

/** Returns whether a mail program shows nothing. */
function isBlank({ pieces, signature }: Cut): boolean {
  return lettersOf(`${textOf(pieces)} ${signature}`) === "";
}

/**
 * Returns the doubt in a mail with both variants: text that is doubtful in the plain text has to be own in the HTML,
 * whose signature and link cards are known.
 */
function doubtOfTwo(cut: Cut, html: HtmlCut, shared: Piece[]): Doubt | null {
  const own = lettersOf(unmarked(html.own)).slice(0, MAX_KNOWN_CHARS);
  const known = `${own} ${lettersOf(unmarked(html.signature))}`;
  const lost = shared.filter((piece) => !piece.own && !cut.pieces.includes(piece));
  if (lost.some(({ text }) => saysMoreThan(known, text))) return "two_texts";
  const other = html.doubtful;
  if (other && lost.some(({ text }) => sharesLine(lettersOf(text), other.text))) return other.why;
  return cut.doubtful && sharesLine(own, cut.doubtful.text) ? cut.doubtful.why : null;
}

function saysMoreThan(letters: string, text: string): boolean {
  return text.split("\n").some((line) => !letters.includes(lettersOf(line)));
}

/** Returns all readable text of an HTML part, for parts that are material anyway. */
export function readableHtml(html: string): { text: string; hidden_characters: number; hidden_html: number } {
  const { pieces, signature, hidden } = readHtml(html);
  const own = pieces.filter((piece) => piece.own).map(({ text }) => unmarked(text));
  const rest = pieces.filter((piece) => !piece.own).map(({ text }) => text);
  const clean = stripHiddenCharacters(joined([...own, signature, ...rest]));
  return { text: clean.text, hidden_characters: clean.removed, hidden_html: hidden };
}

/**
 * Reads several HTML parts by one author, one below the other: behind something not the sender's in one, nothing in
 * later ones is own.
 */
function readPages(pages: readonly string[], reading: { fresh: boolean; beside_text: boolean }): HtmlText {
  const all: HtmlText = { pieces: [], signature: "", pictures: [], leads: [], hidden: 0 };
  for (const page of pages) {
    const { pieces, signature, pictures, leads, hidden } = readHtml(page, reading);
    all.pictures.push(...pictures);
    const last = all.pieces.at(-1);
    const own = all.signature === "" && all.pieces.every((piece) => piece.own);
    for (const piece of pieces) piece.own &&= own;
    const [first] = pieces;
    if (first?.own && last) first.text = joined([all.pieces.pop()?.text ?? "", first.text]);
    all.pieces.push(...pieces);
    all.signature = joined([all.signature, signature]);
    all.leads.push(...leads);
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

interface HtmlCut extends Cut {
  /** All text outside of elements in which mail programs wrap quotes. */
  own: string;
  /** The rest, including what is marked as a signature. */
  wrapped: string;
  marked_off: string;
  pictures: ShownPicture[];
  leads: string[];
  removed: number;
  hidden: number;
}

/** Cuts HTML text into pieces; own ones keep the marks around inserted text. */
function cutHtml(html: HtmlText, fresh: boolean): HtmlCut {
  const nothing: Cut = { pieces: [], signature: "", ended: false, below_marks: false, doubtful: null };
  const all = { ...nothing, unwrapped: false };
  const signatures = [html.signature];
  const marked_off: string[] = [];
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
    addRegion(all, cut);
    signatures.push(cut.signature);
    marked_off.push(cutOff(cut));
  }
  const signature = joined(signatures.map((one) => stripHiddenCharacters(unmarked(one)).text));
  if (all.pieces.length === 0 && holdsSentence(signature))
    all.doubtful = doubtfulIf("below_signature", [signature]);
  if (isLong(signature)) all.pieces.push({ own: false, text: signature });
  return {
    ...all,
    signature: isLong(signature) ? "" : signature,
    pieces: all.pieces
      .map(({ own, text }) => ({ own, text: own ? text : unmarked(text) }))
      .filter(({ text }) => text.trim() !== ""),
    own: joined(html.pieces.filter(({ own }) => own).map(({ text }) => text)),
    wrapped: joined([...html.pieces.filter(({ own }) => !own).map(({ text }) => text), html.signature]).slice(
      0,
      MAX_KNOWN_CHARS,
    ),
    marked_off: unmarked(joined(marked_off)),
    pictures: html.pictures,
    leads: html.leads,
    removed,
    hidden: html.hidden,
  };
}

/**
 * Adds the pieces of a region that is not wrapped in a quote. `unwrapped`: a region contained a quote nevertheless, so
 * a wrapped quote further below may belong to it.
 */
function addRegion(all: Cut & { unwrapped: boolean }, cut: Cut): void {
  all.pieces.push(...cut.pieces);
  all.below_marks ||= cut.below_marks || (all.unwrapped && ownOf(cut.pieces) !== "");
  all.unwrapped ||= !isAllOwn(cut.pieces);
  // The author of the first quote may be named inside it.
  all.ended = cut.ended || (isAllOwn(all.pieces) && !isGreeting(ownOf(all.pieces)));
  all.doubtful ??= cut.doubtful;
}
