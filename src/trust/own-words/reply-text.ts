import { type Cut, cutSigned, cutSource, holdsSentence, isGreeting, isLong } from "./cut-text.ts";
import { stripHiddenCharacters } from "./hidden-characters.ts";
import { bareAddress } from "./html-links.ts";
import { type ShownPicture, signaturePictures } from "./html-pictures.ts";
import { type HtmlText, readHtml } from "./html-text.ts";
import { unmarked } from "./inserted.ts";
import { isAllOwn, joined, ownOf, type Piece, textOf } from "./pieces.ts";
import { type Doubt, doubtfulIf, sharesLine } from "./reply-doubt.ts";
import { isPlaceholder, lettersOf, ownInBoth, withoutInserted } from "./two-texts.ts";

/** How many letters of the HTML's own words are looked through for words in doubt. */
const MAX_KNOWN_CHARS = 128 * 1024;

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
  /**
   * What nothing but marks in the text parts from the own words: a line of dashes, a mark before each line. Where others
   * wrote some of the text, they may have written these as well.
   */
  marked_off: string;
  /**
   * Whether own words stand below a quote of which nothing but marks before its lines says where it ends: a program that
   * marks none, and one that breaks lines behind their mark, can make others' words look like these.
   */
  below_marks: boolean;
  /** Why some of the rest may be the sender's own all the same; null where nothing speaks for that. */
  in_doubt: Doubt | null;
  /** The Content-IDs of the pictures that are shown in the signature and nowhere else. */
  signature_pictures: string[];
  hidden_characters: number;
  /** Hidden elements and comments of the HTML whose words were left out. */
  hidden_html: number;
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
  const beside_text = text.text.trim() !== "";
  const cut = cutSigned(source, text.text, { fresh });
  const html = cutHtml(readPages([body.html ?? []].flat(), { fresh, beside_text }), fresh);
  const split = isBlank(html) ? splitText(cut, html) : beside_text ? splitBoth(cut, html) : splitHtml(html);
  return {
    ...split,
    signature_pictures: signaturePictures(html.pictures),
    hidden_characters: Math.max(text.removed, html.removed),
    hidden_html: html.hidden,
  };
}

type Split = Omit<SplitText, "signature_pictures" | "hidden_characters" | "hidden_html">;

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
    whole: isAllOwn(pieces) && html.hidden === 0 && !html.hides_link && !saysMoreBelow(html),
    marked_off: html.marked_off,
    below_marks: html.below_marks,
    in_doubt: html.doubtful?.why ?? null,
  };
}

function splitBoth(cut: Cut, html: HtmlCut): Split {
  // What is said of a picture elsewhere is material, and that is noticed.
  const signs = html.pictures.length > 0 && html.pictures.every((picture) => picture.signature);
  const [text, placeholders] = signs ? withoutPlaceholders(cut.pieces) : [cut.pieces, ""];
  const [shared, signature] = withoutSignature(ownInBoth(text, ownOf(html.pieces)), cut, html);
  const shown = unmarked(textOf(html.pieces));
  const isStub = lettersOf(`${textOf(cut.pieces)} ${cut.signature}`).length * 2 < lettersOf(shown).length;
  const pieces = isStub ? [...shared, { own: false, text: shown }] : shared;
  const own = ownOf(signature === "" ? cut.pieces : shared);
  const same = lettersOf(own) === lettersOf(ownOf(html.pieces));
  return {
    ...splitOf({ pieces, signature: joined([cut.signature, signature, placeholders]) }),
    whole: same && splitHtml(html).whole && isAllOwn(shared) && !saysMoreBelow(cut),
    marked_off: withoutLines(cutOff(cut), html.wrapped),
    // Own words are so in both, and where the HTML wraps a quote, it says where that ends.
    below_marks: html.below_marks || (cut.below_marks && isAllOwn(html.pieces)),
    in_doubt: signature !== "" && saysMoreBelow(html) ? "below_signature" : doubtOfTwo(cut, html, shared),
  };
}

/** Parts the lines from the own pieces that stand for pictures and say nothing else. */
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

/** Parts what stands last in the text from the rest, if it is what the HTML marks as the signature. */
function withoutSignature(pieces: Piece[], cut: Cut, html: HtmlCut): [Piece[], signature: string] {
  const own = pieces.slice(0, pieces.findLastIndex((piece) => piece.own) + 1);
  const last = textOf(pieces.slice(own.length));
  const marked = lettersOf(html.signature.replace(BRACKETED, ""));
  // The HTML may mark the line of a program, which the text shows to be one, with the signature above that.
  const is_signature = [last, `${last} ${cut.signature}`].some(
    (text) => lettersOf(text.replace(BRACKETED, "")) === marked,
  );
  return last !== "" && html.signature !== "" && is_signature ? [own, last] : [pieces, ""];
}

/** What stands for a picture in the text: its description, its address or its Content-ID. */
const BRACKETED = /\[[^[\]\n]{1,300}\]/g;

/** Whether the signature may be meant to be read. */
function saysMoreBelow({ doubtful }: Cut): boolean {
  return doubtful?.why === "below_signature";
}

function cutOff({ pieces, signature }: Pick<Cut, "pieces" | "signature">): string {
  return joined([...pieces.filter(({ own }) => !own).map(({ text }) => text), signature]);
}

/** Returns a text without the lines that are known with their addresses: a line with the same words may lead elsewhere. */
function withoutLines(text: string, known: string): string {
  const lines = new Set(known.split("\n").map(asCompared));
  return text
    .split("\n")
    .filter((line) => !lines.has(asCompared(line)))
    .join("\n");
}

/** A line however it is spaced; behind an address that is shown, the plain text may have it once more. */
function asCompared(line: string): string {
  return line
    .replace(/(?<!\S)([^\s<>]+)\s?<([^\s<>]+)>/g, (both, shown: string, href: string) =>
      bareAddress(shown) === bareAddress(href) ? shown : both,
    )
    .replaceAll(/\s+/g, "");
}

/** A mail program shows nothing of it. */
function isBlank({ pieces, signature }: Cut): boolean {
  return lettersOf(`${textOf(pieces)} ${signature}`) === "";
}

/** Words that are in doubt in the text have to be the sender's own in the HTML, whose signature and cards are known. */
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
  const all: HtmlText = { pieces: [], signature: "", pictures: [], hides_link: false, hidden: 0 };
  for (const page of pages) {
    const { pieces, signature, pictures, hides_link, hidden } = readHtml(page, reading);
    all.pictures.push(...pictures);
    const last = all.pieces.at(-1);
    const own = all.signature === "" && all.pieces.every((piece) => piece.own);
    for (const piece of pieces) piece.own &&= own;
    const [first] = pieces;
    if (first?.own && last) first.text = joined([all.pieces.pop()?.text ?? "", first.text]);
    all.pieces.push(...pieces);
    all.signature = joined([all.signature, signature]);
    all.hides_link ||= hides_link;
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
  /** All that stands outside of what mail programs wrap a quote in. */
  own: string;
  /** The rest, with what is marked as a signature. */
  wrapped: string;
  marked_off: string;
  pictures: ShownPicture[];
  hides_link: boolean;
  removed: number;
  hidden: number;
}

/** Own pieces keep their marks around what may be inserted. */
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
    hides_link: html.hides_link,
    removed,
    hidden: html.hidden,
  };
}

/**
 * Adds what was cut out of a region that the page wraps in no quote. `unwrapped`: one held a quote all the same, so that a
 * quote which the page wraps further below may be a part of that.
 */
function addRegion(all: Cut & { unwrapped: boolean }, cut: Cut): void {
  all.pieces.push(...cut.pieces);
  all.below_marks ||= cut.below_marks || (all.unwrapped && ownOf(cut.pieces) !== "");
  all.unwrapped ||= !isAllOwn(cut.pieces);
  // Whom the first quote is from may stand inside it.
  all.ended = cut.ended || (isAllOwn(all.pieces) && !isGreeting(ownOf(all.pieces)));
  all.doubtful ??= cut.doubtful;
}
