import { Parser } from "htmlparser2";
import { type Declarations, readSheet, styleOf } from "./html-rules.ts";
import {
  append,
  breakLines,
  breaksAround,
  collapsed,
  type HtmlText,
  type Region,
  regionFor,
  textOf,
} from "./html-region.ts";
import { addWords, isItsAddress, isWorthShowing, type Link, linkOf } from "./html-links.ts";
import { isBookmarked, pictureIn, type ShownPicture } from "./html-pictures.ts";
import { addLeads, leadOf, leadsOf } from "./html-leads.ts";
import { listOf, type ListMarks, takeMark } from "./html-lists.ts";
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

/** Depth limit: htmlparser2 searches its stack of open elements at every tag, so deep nesting makes it slow. */
const MAX_DEPTH = 512;

/** Raw text elements, inside which parsing cannot be restarted. */
const RAW = new Set(["style", "script", "title", "textarea"]);
/** Elements that are not shown, with their content. */
const NOT_TEXT = new Set(
  "style script title template select option optgroup datalist textarea iframe object dialog noframes noembed video audio canvas desc metadata rp progress meter".split(
    " ",
  ),
);
const CELLS = new Set(["td", "th"]);
interface Frame {
  name: string;
  look: Look;
  /** Shared by everything inside a hidden element, so that it counts once. */
  hidden_words: { seen: boolean } | null;
  not_text: boolean;
  signature: boolean;
  /** Whether Outlook marks it as part of its signature; not all of the signature is marked. */
  bookmarked: boolean;
  quote: QuotePart | null;
  link: Link | null;
  /** Whether a mail program inserted it. */
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
  /** Whether following text is the sender's own. */
  own: boolean;
  /** Open quotes, and whether the outermost ends with its element. */
  quotes: number;
  bounded: boolean;
  /** Whether there was a quote. */
  quoted: boolean;
  /**
   * Open elements around both a quote and answers to it, and whether the quote in there has to end with its element.
   */
  around: number;
  answerable: boolean;
  /** Whether nothing that follows can be the sender's own any more. */
  ended: boolean | "by_signature";
  /** Elements that were closed implicitly since the last tag. */
  unclosed: string[];
  /** Whether everything up to the first quote is signature. */
  signs_on: boolean;
  /** "html" and "body", once met: a second one is that of another mail. */
  pages: Set<string>;
  /** The URL of the last link; a link card repeats it many times. */
  last_href: string;
  pictures: ShownPicture[];
  leads: string[];
  hidden: number;
  fresh: boolean;
  beside_text: boolean;
}

/**
 * Reads an HTML mail. `fresh`: it is neither reply nor forward, so a separator line does not begin a quote.
 * `beside_text`: the mail also has a plain text, which shows its quotes itself.
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
    leads: [],
    hidden: 0,
    fresh,
    beside_text,
  };
  let from = 0;
  while (from < html.length) from = walkUntilTooDeep(html, from, walk);
  const { regions, signature, pictures, leads, hidden } = walk;
  const pieces = regions.map((region) => ({
    own: region.own,
    text: region.own ? textOf(region) : unmarked(textOf(region)),
    lines_to_quote: region.lines_to_quote,
  }));
  return { pieces, signature: unmarked(textOf(signature)), pictures, leads, hidden };
}

/**
 * Parses from an index, and returns where to continue. When more than `MAX_DEPTH` elements are open, the next part
 * starts with none; from there on no text counts as the sender's own.
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
    onclosetag: (name, is_implied) => close(walk, name, is_implied),
    ontext: (text) => addText(walk, text),
    oncomment(text) {
      // For a browser such a comment ends with the next `>`, and what follows is shown (HTML §13.2.5.42).
      if (text.startsWith("[CDATA[") && walk.quoted) end(walk);
      // A single word is a mark of a program (`<!-- tmjah_g_1299s -->`).
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
  noteLeads(walk, leadsOf(element));
  if (name === "br") breakLines(regionOf(walk), Math.min(2, regionOf(walk).breaks + 1));
  breakLines(regionOf(walk), breaksAround(name));
  if (CELLS.has(name)) addText(walk, " ");
  if (name === "li") addText(walk, takeMark(list));
}

/** Ends own words at an element in which browsers may see another text than we do. */
function endAtForeign(walk: Walk, name: string): void {
  walk.unclosed = [];
  if (name === "math" || (walk.quoted && isForeign(name))) end(walk);
}

/** Returns whether text is in a link card, which is a link with another one inside. */
function isInsertedIn(parent: Frame, link: Link | null): boolean {
  return parent.inserted || (link !== null && parent.link !== null);
}

/** Returns the part of a quote that begins with this element, if any, and then ends own words. */
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

/** Returns whether a separator line begins no quote: in a mail that is no reply, or above a table in the signature. */
function isLineOnly(walk: Walk, name: string): boolean {
  return name === "hr" ? walk.fresh : name === "table" && innermost(walk).signature;
}

/** Treats the element around a quote as part of it, unless a plain text shows what is quoted. */
function countAround(walk: Walk, part: QuotePart): QuotePart {
  if (part !== "around") return part;
  if (!walk.beside_text) return "quote";
  walk.around += 1;
  return part;
}

/** Ends own words for good. */
function end(walk: Walk, how: Walk["ended"] = true): void {
  walk.own = false;
  walk.ended = how;
  walk.signs_on = false;
}

/**
 * Handles the end of a quote's element. Only a blockquote surely ends its quote; other elements may end before the
 * quoted mail does.
 */
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

/**
 * Handles the end of an attribution; its last line is the attribution itself. Above it senders may have typed inside
 * the same element, where the program had put the cursor.
 */
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

/** Returns whether a signature begins or continues with this element, and then ends own words. */
function meetsSignature(walk: Walk, element: HtmlElement): boolean {
  if (!isSignature(element)) return false;
  if (!walk.own) return walk.ended === "by_signature" && !walk.quoted;
  end(walk, "by_signature");
  walk.signs_on = precedesSignature(element);
  return true;
}

/**
 * Handles the end of an element. `isImplied`: it has no end tag of its own, and ends with its parent or at the next of
 * its kind.
 */
function close(walk: Walk, name: string, is_implied: boolean): void {
  const { name: opened, link } = innermost(walk);
  if (opened !== name || walk.stack.length === 1) return;
  if (!is_implied) endAtTorn(walk, name);
  // Only at the link's own element: once for each element inside it would be quadratic.
  if (link !== null && link !== walk.stack.at(-2)?.link) endLink(walk, link);
  breakLines(regionOf(walk), breaksAround(name));
  const frame = walk.stack.pop();
  if (is_implied) {
    walk.unclosed.push(name);
    if (frame?.quote) end(walk);
  }
  if (frame?.quote) leaveQuote(walk, frame.quote);
}

/**
 * Ends own words where a browser would continue the quote because tags are torn. HTML that a mail program writes closes
 * everything that it opens.
 */
function endAtTorn(walk: Walk, name: string): void {
  const is_torn = !mayEnd(name, walk.unclosed);
  walk.unclosed = [];
  if (is_torn && walk.quoted) end(walk);
}

/**
 * Handles the end of a link. Link text that is not the URL may be the page's title; the URL itself is the author's
 * either way.
 */
function endLink(walk: Walk, link: Link): void {
  const { inserted, hidden_words, not_text } = innermost(walk);
  if (isItsAddress(link)) for (const { parts, at, text } of link.words) parts[at] = text;
  const repeats = inserted && link.href === walk.last_href;
  if (!isWorthShowing(link) || repeats || hidden_words !== null || not_text)
    return repeats ? undefined : noteLeads(walk, leadOf(link));
  walk.last_href = link.href;
  append(regionOf(walk), ` <${link.href}>`);
}

function noteLeads(walk: Walk, leads: string[]): void {
  if (walk.own && !signs(walk)) addLeads(walk.leads, leads);
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

function innermost(walk: Walk): Frame {
  return walk.stack.at(-1) ?? PAGE;
}

/** Returns whether a picture here belongs to the signature. */
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
