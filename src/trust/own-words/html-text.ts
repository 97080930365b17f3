import { Parser } from "htmlparser2";
import { type Declarations, readSheet, styleOf } from "./html-rules.ts";
import { append, breakLines, breaksAround, type Region, regionFor, textOf } from "./html-region.ts";
import { addWords, isItsAddress, isWorthShowing, type Link, linkOf } from "./html-links.ts";
import { isBookmarked, pictureIn, type ShownPicture } from "./html-pictures.ts";
import { listOf, type ListMarks, nextMark } from "./html-lists.ts";
import {
  isQuote,
  isSignature,
  namesItsAuthor,
  precedesSignature,
  type QuotePart,
  quotePartOf,
} from "./html-quotes.ts";
import { type HtmlElement, isHidden, type Look, lookOf, PAGE_LOOK } from "./html-style.ts";
import { isForeign, mayEnd } from "./html-torn.ts";
import { isInserted, marked, unmarked } from "./inserted.ts";

/** htmlparser2 searches its stack of open elements at every tag, so a deep one makes it slow. */
const MAX_DEPTH = 512;

/** Elements whose tags end nothing but themselves: reading cannot start anew inside one. */
const RAW = new Set(["style", "script", "title", "textarea"]);
/** Neither these nor anything inside them is shown. */
const NOT_TEXT = new Set(
  "style script title template select option optgroup datalist textarea iframe object dialog noframes noembed video audio canvas desc metadata rp progress meter".split(
    " ",
  ),
);
const CELLS = new Set(["td", "th"]);
export interface HtmlPiece {
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
  /** Whether a link among own words has none, such as one that is a picture. */
  hides_link: boolean;
  /** Elements and comments with words in them that a reader would not have seen. */
  hidden: number;
}

interface Frame {
  name: string;
  look: Look;
  /** Shared by everything inside one hidden element, so that it counts once. */
  hidden_words: { seen: boolean } | null;
  not_text: boolean;
  signature: boolean;
  /** Whether Outlook marks it as a part of its signature; not all of the words there have the mark. */
  bookmarked: boolean;
  quote: QuotePart | null;
  link: Link | null;
  /** Whether a mail program put it there by itself. */
  inserted: boolean;
  /** The list around it. */
  list: ListMarks;
}

const PAGE: Frame = {
  name: "",
  look: PAGE_LOOK,
  hidden_words: null,
  not_text: false,
  signature: false,
  bookmarked: false,
  quote: null,
  link: null,
  inserted: false,
  list: { next: null },
};

interface Walk {
  stack: Frame[];
  sheet: Map<string, Declarations>;
  regions: Region[];
  signature: Region;
  /** Whether what comes is the sender's own. */
  own: boolean;
  /** Quotes that are open, and whether the outermost ends where its element does. */
  quotes: number;
  bounded: boolean;
  /** Whether there was one. */
  quoted: boolean;
  /** Those of them that are around a quote and answers to it; whether the quote there is to end where its element does. */
  around: number;
  answerable: boolean;
  /** Whether nothing that follows can be the sender's own. */
  ended: boolean | "by_signature";
  /** Elements that were closed by implication since the last tag. */
  unclosed: string[];
  /** Whether all until the first quote is signature. */
  signs_on: boolean;
  /** "html" and "body", once met: a second one is that of another mail. */
  pages: Set<string>;
  /** The address of the last link: a card tells that of its page many times. */
  last_href: string;
  pictures: ShownPicture[];
  hides_link: boolean;
  hidden: number;
  fresh: boolean;
  beside_text: boolean;
}

/**
 * `fresh`: the mail answers and passes on none, so that a line across it parts nothing. `beside_text`: a plain text says
 * of its own what is quoted.
 */
export function readHtml(
  html: string,
  { fresh = false, beside_text = false }: { fresh?: boolean; beside_text?: boolean } = {},
): HtmlText {
  const walk: Walk = {
    stack: [PAGE],
    sheet: new Map(),
    regions: [regionFor(true)],
    signature: regionFor(false),
    own: true,
    quotes: 0,
    bounded: false,
    quoted: false,
    around: 0,
    answerable: false,
    ended: false,
    unclosed: [],
    signs_on: false,
    pages: new Set(),
    last_href: "",
    pictures: [],
    hides_link: false,
    hidden: 0,
    fresh,
    beside_text,
  };
  let from = 0;
  while (from < html.length) from = walkUntilTooDeep(html, from, walk);
  const { regions, signature, pictures, hides_link, hidden } = walk;
  const pieces = regions.map((region) => ({
    own: region.own,
    text: region.own ? textOf(region) : unmarked(textOf(region)),
    lines_to_quote: region.lines_to_quote,
  }));
  return { pieces, signature: unmarked(textOf(signature)), pictures, hides_link, hidden };
}

/**
 * Returns where to go on. Past `MAX_DEPTH` open elements it starts over with none: what follows is no longer
 * taken for the sender's own words.
 */
function walkUntilTooDeep(html: string, from: number, walk: Walk): number {
  let next = html.length;
  const parser = new Parser({
    onopentag(name, attributes) {
      endAtForeign(walk, name);
      open(walk, name, attributes);
      if (walk.stack.length <= MAX_DEPTH || RAW.has(name)) return;
      next = from + parser.endIndex + 1;
      end(walk);
      walk.stack = [PAGE];
      parser.pause();
    },
    onclosetag: (name, isImplied) => close(walk, name, isImplied),
    ontext: (text) => addText(walk, text),
    oncomment(text) {
      // For a browser it ends with the next `>`, and what follows is shown (HTML §13.2.5.42).
      if (text.startsWith("[CDATA[") && walk.quoted) end(walk);
      // A word alone is a mark of the program's own (`<!-- tmjah_g_1299s -->`).
      const words = text.trim();
      if (/\p{L}{3}/u.test(words) && /\s/.test(words) && !/^\[if|endif\]$/i.test(words)) walk.hidden += 1;
    },
  });
  parser.write(html.slice(from));
  if (next === html.length) parser.end();
  return next;
}

function open(walk: Walk, name: string, attributes: Record<string, string>): void {
  const parent = innermost(walk);
  const element = { name, attributes };
  const style = styleOf(element, walk.sheet);
  const quote = meetsQuote(walk, element, style);
  const signature = quote === null && (parent.signature || meetsSignature(walk, element));
  const look = lookOf(element, style, parent.look);
  const hidden_words = isHidden(look) ? (parent.hidden_words ?? { seen: false }) : null;
  const not_text = parent.not_text || NOT_TEXT.has(name);
  const list = listOf(element) ?? parent.list;
  const opened = linkOf(element);
  const link = opened ?? parent.link;
  const inserted = isInsertedIn(parent, opened) || isInserted(element, style);
  const bookmarked = isBookmarked(element, parent);
  walk.stack.push({ name, look, hidden_words, not_text, signature, bookmarked, quote, link, inserted, list });
  walk.pictures.push(...pictureIn(element, signs(walk)));
  if (name === "br") breakLines(regionOf(walk), Math.min(2, regionOf(walk).breaks + 1));
  breakLines(regionOf(walk), breaksAround(name));
  if (CELLS.has(name)) addText(walk, " ");
  if (name === "li") addText(walk, nextMark(list));
}

/** Ends the sender's own words at an element in which browsers may read another text than we do. */
function endAtForeign(walk: Walk, name: string): void {
  walk.unclosed = [];
  if (name === "math" || (walk.quoted && isForeign(name))) end(walk);
}

/** A link inside another one is part of a card, as is all that is in one. */
function isInsertedIn(parent: Frame, link: Link | null): boolean {
  return parent.inserted || (link !== null && parent.link !== null);
}

/** Returns the part of a quote that begins with this element, if any; it ends the sender's own words. */
function meetsQuote(walk: Walk, element: HtmlElement, style: Declarations): Frame["quote"] {
  const { name } = element;
  const page = walk.pages.has(name);
  if (name === "html" || name === "body") walk.pages.add(name);
  if (page) end(walk);
  const quote = !isLineOnly(walk, name) && isQuote(element, style);
  if (!quote) return null;
  walk.signs_on = false;
  if (walk.own) {
    const region = regionOf(walk);
    region.lines_to_quote = namesItsAuthor(element, style) ? null : Number(region.breaks > 1 || region.blank);
    walk.own = false;
  }
  if (walk.quotes === 0) walk.bounded = false;
  if (name === "blockquote") walk.bounded = true;
  walk.quotes += 1;
  walk.quoted = true;
  return countAround(walk, quotePartOf(element));
}

/** Whether a line parts nothing: across a mail that answers none, or above a table that is a part of the signature. */
function isLineOnly(walk: Walk, name: string): boolean {
  return name === "hr" ? walk.fresh : name === "table" && innermost(walk).signature;
}

/** Counts the element around a quote as a part of it, unless a plain text says what is quoted. */
function countAround(walk: Walk, part: QuotePart): QuotePart {
  if (part !== "around") return part;
  if (!walk.beside_text) return "quote";
  walk.around += 1;
  return part;
}

/** Past this nothing is the sender's own. */
function end(walk: Walk, how: Walk["ended"] = true): void {
  walk.own = false;
  walk.ended = how;
  walk.signs_on = false;
}

/** The words of a quote end with the element around a blockquote. All others may end before what they quote does. */
function leaveQuote(walk: Walk, quote: QuotePart): void {
  if (quote === "attribution") leaveAttribution(walk);
  walk.quotes -= 1;
  if (quote === "around") walk.around -= 1;
  if (walk.quotes > walk.around || walk.ended) return;
  if (walk.quotes > 0) {
    if (quote === "attribution") walk.answerable = true;
    else if (walk.bounded && walk.answerable) walk.own = true;
  } else if (walk.bounded) walk.own = true;
  else if (quote !== "attribution") walk.ended = true;
}

/** Leaves an attribution, its last line. Above it senders may have typed inside the same element, where the program had put the cursor. */
function leaveAttribution(walk: Walk): void {
  const named = walk.regions.at(-1);
  const above = walk.regions.at(-2);
  if (walk.own || walk.ended || walk.quotes > walk.around + 1) return;
  if (named === undefined || above?.own !== true) return;
  const text = named.parts.join("").trimEnd();
  const last = text.lastIndexOf("\n");
  named.parts = [unmarked(text.slice(last + 1))];
  if (last <= 0) return;
  breakLines(above, 1);
  append(above, text.slice(0, last));
}

/** Whether a signature begins with this element, or goes on with it; ends the sender's own words if so. */
function meetsSignature(walk: Walk, element: HtmlElement): boolean {
  if (!isSignature(element)) return false;
  if (!walk.own) return walk.ended === "by_signature" && !walk.quoted;
  end(walk, "by_signature");
  walk.signs_on = precedesSignature(element);
  return true;
}

/** `isImplied`: it has no end tag of its own, and ends with the element around it or at the next of its kind. */
function close(walk: Walk, name: string, isImplied: boolean): void {
  const { name: opened, link } = innermost(walk);
  if (opened !== name || walk.stack.length === 1) return;
  if (!isImplied) endAtTorn(walk, name);
  // Not where it is that of an element around: once for each that is inside would be far more than came in.
  if (link !== null && link !== walk.stack.at(-2)?.link) endLink(walk, link);
  breakLines(regionOf(walk), breaksAround(name));
  const frame = walk.stack.pop();
  if (isImplied) {
    walk.unclosed.push(name);
    if (frame?.quote) end(walk);
  }
  if (frame?.quote) leaveQuote(walk, frame.quote);
}

/**
 * Ends the sender's own words where a browser would go on with the quote. What a mail program writes of a page that it
 * has read closes all that it opens.
 */
function endAtTorn(walk: Walk, name: string): void {
  const isTorn = !mayEnd(name, walk.unclosed);
  walk.unclosed = [];
  if (isTorn && walk.quoted) end(walk);
}

/** The words of a link are the page's as soon as they are not its address; the address is the author's either way. */
function endLink(walk: Walk, link: Link): void {
  const { inserted, hidden_words, not_text } = innermost(walk);
  if (isItsAddress(link)) for (const { parts, at, text } of link.words) parts[at] = text;
  walk.hides_link ||= walk.own && link.shown.trim() === "" && /^https?:/i.test(link.href);
  const repeats = inserted && link.href === walk.last_href;
  if (!isWorthShowing(link) || repeats || hidden_words !== null || not_text) return;
  walk.last_href = link.href;
  append(regionOf(walk), ` <${link.href}>`);
}

function addText(walk: Walk, source: string): void {
  const { name, hidden_words, not_text, look } = innermost(walk);
  if (name === "style") readSheet(source, walk.sheet);
  if (not_text) return;
  const text = unmarked(source);
  if (hidden_words !== null) {
    if (hidden_words.seen || !/[\p{L}\p{N}]/u.test(text)) return;
    hidden_words.seen = true;
    walk.hidden += 1;
    return;
  }
  if (!walk.own && walk.quotes === walk.around && /[\p{L}\p{N}]/u.test(text)) walk.answerable = false;
  const region = regionOf(walk);
  const piece = look.keeps_spaces ? text : collapsed(text, region.breaks > 0);
  if (piece !== "") addWord(region, piece, innermost(walk));
  else if (text.includes("\u00A0")) region.blank = true;
}

function addWord(region: Region, piece: string, { link, inserted }: Frame): void {
  if (link !== null) addWords(link, piece, inserted ? null : region.parts);
  append(region, inserted || link !== null ? marked(piece) : piece);
}

function collapsed(text: string, atLineStart: boolean): string {
  const line = text.replace(/\s+/g, " ");
  return atLineStart ? line.trimStart() : line;
}

function innermost(walk: Walk): Frame {
  return walk.stack.at(-1) ?? PAGE;
}

/** Whether a picture here is one of the signature. */
function signs(walk: Walk): boolean {
  return innermost(walk).bookmarked || regionOf(walk) === walk.signature;
}

function regionOf(walk: Walk): Region {
  if (!walk.own && (walk.signs_on || innermost(walk).signature)) return walk.signature;
  const last = walk.regions.at(-1);
  if (last?.own === walk.own) return last;
  const next = regionFor(walk.own);
  walk.regions.push(next);
  return next;
}
