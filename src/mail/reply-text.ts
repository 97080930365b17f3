import { SEPARATORS, stripHiddenCharacters } from "./hidden-characters.ts";
import { type HtmlText, readHtml } from "./html-text.ts";
import { firstMarker, type Marker } from "./reply-markers.ts";

/** Nobody writes a longer instruction into a mail; what exceeds it is content. Bounds the search for markers too. */
const MAX_OWN_LINES = 2_000;
const MAX_OWN_CHARS = 64 * 1024;
/** A longer "signature" is taken for content: somebody wrote below a line of dashes. */
const MAX_SIGNATURE_LINES = 20;
const MAX_SIGNATURE_CHARS = 2_000;
/** Letters the HTML may show between two lines of the plain text, such as the words of a picture. */
const MAX_GAP_CHARS = 200;

export interface SplitText {
  /** The sender's own words above the first quote, forward or signature. */
  new_text: string;
  /** What is below; short signatures are in neither. */
  rest_text: string;
  /** Whether the own words are all there is but for a signature, in each variant of the mail. */
  whole: boolean;
  hidden_characters: number;
  /** Hidden elements and comments of the HTML whose words were left out. */
  hidden_html: number;
}

interface Cut {
  own: string;
  rest: string;
}

/**
 * Only `new_text` may ever be obeyed, so whatever is in doubt goes to `rest_text`. With both variants of a mail the
 * plain text is what is read, and a line of it is the sender's own only if the HTML shows it above its first
 * marker too.
 */
export function splitNewText(body: { text?: string | undefined; html?: string | undefined }): SplitText {
  const text = stripHiddenCharacters(body.text ?? "");
  const cut = cutSource(body.text ?? "", text.text);
  if (body.html === undefined || body.html.trim() === "") {
    const counts = { hidden_characters: text.removed, hidden_html: 0 };
    return { new_text: cut.own, rest_text: cut.rest, whole: cut.rest === "", ...counts };
  }
  const html = cutHtml(readHtml(body.html));
  const hidden = { hidden_characters: Math.max(text.removed, html.removed), hidden_html: html.hidden };
  const plain = html.rest === "" && html.hidden === 0;
  if (text.text.trim() === "") return { new_text: html.own, rest_text: html.rest, whole: plain, ...hidden };

  const shared = ownInBoth(cut.own, html.own);
  const unshared = cut.own.slice(shared.length).trim();
  const isStub = lettersOf(text.text).length * 2 < lettersOf(html.own + html.rest).length;
  const rest = isStub ? [unshared, cut.rest, html.own, html.rest] : [unshared, cut.rest];
  const whole = plain && cut.rest === "" && lettersOf(cut.own) === lettersOf(html.own);
  return { new_text: shared.trim(), rest_text: joined(rest), whole, ...hidden };
}

/** All that can be read of an HTML part, for parts that are content anyway. */
export function readableHtml(html: string): { text: string; hidden_characters: number; hidden_html: number } {
  const { fresh, signature, rest, hidden } = readHtml(html);
  const clean = stripHiddenCharacters(joined([fresh, signature, rest]));
  return { text: clean.text, hidden_characters: clean.removed, hidden_html: hidden };
}

function cutHtml(html: HtmlText): Cut & { removed: number; hidden: number } {
  const fresh = stripHiddenCharacters(html.fresh);
  const rest = stripHiddenCharacters(html.rest);
  const cut = cutSource(html.fresh, fresh.text, html.lines_to_quote);
  const signature = isLong(html.signature) ? stripHiddenCharacters(html.signature).text : "";
  return {
    own: cut.own,
    rest: joined([cut.rest, signature, rest.text]),
    removed: fresh.removed + rest.removed,
    hidden: html.hidden,
  };
}

/**
 * A separator that is no line end in mail is one to some programs, and their quotes may begin behind it: what is the
 * sender's own must be so in both readings.
 */
function cutSource(source: string, text: string, linesToQuote: number | null = null): Cut {
  const cut = cutText(text, linesToQuote);
  const lines = source.replaceAll("\r\n", "\n").replaceAll(SEPARATORS, "\n");
  if (source === lines) return cut;
  const { own } = cutText(stripHiddenCharacters(lines).text, linesToQuote);
  if (own.length >= cut.own.length) return cut;
  const visible = text.trimStart();
  return { own: visible.slice(0, own.length).trimEnd(), rest: joined([visible.slice(own.length)]) };
}

/** `linesToQuote` is how many empty lines below the text a quote begins, if one does. */
function cutText(text: string, linesToQuote: number | null = null): Cut {
  const lines = text.split("\n");
  const head = linesThatMayBeOwn(lines, linesToQuote).map((line) => line.trim());
  const marker = firstMarker(head);
  const start = marker?.line ?? head.length;
  const own = joined([lines.slice(0, start).join("\n")]);
  if (marker?.kind !== "signature") return { own, rest: joined([lines.slice(start).join("\n")]) };

  let next: Marker | null = marker;
  while (next?.kind === "signature") next = firstMarker(head, next.line + 1);
  const end = next?.line ?? lines.length;
  const signature = lines.slice(start, end).join("\n");
  return { own, rest: joined([isLong(signature) ? signature : "", lines.slice(end).join("\n")]) };
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

/** The lines from the top of `own` that `shown` has too, in the same order. Spaces, punctuation and link targets are free. */
function ownInBoth(own: string, shown: string): string {
  const letters = lettersOf(shown);
  let searched = 0;
  let kept = 0;
  for (const line of own.split("\n")) {
    const wanted = lettersOf(line);
    const at = letters.slice(searched, searched + wanted.length + MAX_GAP_CHARS).indexOf(wanted);
    if (at === -1) break;
    searched += at + wanted.length;
    kept += line.length + 1;
  }
  return own.slice(0, kept);
}

function lettersOf(text: string): string {
  return text
    .replace(/<(https?:|mailto:)[^<>\s]*>|\[(image|cid|bild):[^[\]\n]{0,200}\]/gi, "")
    .replace(/[^\p{L}\p{N}]+/gu, "")
    .toLowerCase();
}

function joined(parts: string[]): string {
  return parts
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("\n\n");
}
