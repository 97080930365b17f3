import { withoutEntities } from "../as-read.ts";
import type { Part, Reading } from "./part.ts";

const words = (text: string): Set<string> => new Set(text.split(" "));
/** Elements with which web pages and SVG pictures begin: these are for people, and tools do not parse them as data. */
const PAGES = words(
  "html head body svg math main article section header footer nav aside figure details template script style p div span br hr h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table thead tbody tr td th a img b i u s em strong small font center blockquote pre code",
);
/** Elements for formatting only. */
const LOOKS = words(
  "p div span br hr b i u s em strong small big sub sup font center h1 h2 h3 h4 h5 h6 ul ol li dl dt dd table thead tbody tfoot tr td th caption a img blockquote pre code tt",
);
/** Attributes that hold namespaces and schemas, which look like URLs and are never fetched. */
const SCHEMA = /^xmlns(?::|$)|schemaLocation$/i;

const OPENING = /<([\p{L}_][\p{L}\p{N}_.-]*(?::[\p{L}\p{N}_.-]+)?)(?=[\s/>])/uy;
const ATTRIBUTE = /[\s/]*([^\s/=>"'<]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/y;

/**
 * Reads texts and attributes of an XML document by the names of their elements. Undefined for a web page or part of
 * one.
 */
export function readXml(text: string, max_chars: number): Reading | undefined {
  const root = rootOf(text);
  if (root === undefined || PAGES.has(localName(root).toLowerCase())) return undefined;
  if (!text.includes(`</${root}`) && !text.includes("/>")) return undefined;
  if (text.length > max_chars) return { parts: [], chars: text.length };
  return { parts: partsOf(text), chars: text.length };
}

function rootOf(text: string): string | undefined {
  if (!/^[\s\uFEFF]*</.test(text)) return undefined;
  for (let at = text.indexOf("<"); ;) {
    const skipped = skippedAt(text, at);
    if (skipped === undefined) return openingAt(text, at);
    at = text.indexOf("<", skipped.end);
    // A comment may stand before prose.
    if (at < 0 || text.slice(skipped.end, at).trim() !== "") return undefined;
  }
}

function openingAt(text: string, at: number): string | undefined {
  OPENING.lastIndex = at;
  return OPENING.exec(text)?.[1];
}

function localName(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}

/** Skips a comment, processing instruction, declaration or CDATA; undefined where none begins. */
function skippedAt(text: string, at: number): Piece | undefined {
  const upTo = (mark: string, from: number): number => {
    const found = text.indexOf(mark, from);
    return found < 0 ? text.length : found;
  };
  if (text.startsWith("<!--", at)) return { end: upTo("-->", at + 4) + 3 };
  if (text.startsWith("<?", at)) return { end: upTo("?>", at + 2) + 2 };
  if (text.startsWith("<![CDATA[", at)) {
    const close = upTo("]]>", at + 9);
    return { end: close + 3, text: text.slice(at + 9, close) };
  }
  if (!text.startsWith("<!", at)) return undefined;
  const bracket = text.slice(at, upTo(">", at + 2)).indexOf("[");
  const close = upTo(">", bracket < 0 ? at : upTo("]", at + bracket));
  const value = text.slice(at, close);
  // Entities, of which other text may be composed.
  return { end: close + 1, parts: /<!ENTITY/i.test(value) ? [{ key: "", value }] : [] };
}

interface Element {
  key: string | null;
  /** The text directly in it. */
  texts: string[];
}

function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  const elements: Element[] = [{ key: null, texts: [] }];
  const close = (): void => {
    const { key, texts } = elements.length > 1 ? (elements.pop() ?? NONE) : NONE;
    if (texts.length > 0) parts.push({ key, value: texts.join("") });
  };
  for (const piece of piecesOf(text)) {
    parts.push(...(piece.parts ?? []));
    if (piece.text !== undefined) elements.at(-1)?.texts.push(piece.text);
    if (piece.opens !== undefined) elements.push({ key: piece.opens, texts: [] });
    if (piece.closes === true) close();
  }
  while (elements.length > 1) close();
  return parts;
}

const NONE: Element = { key: null, texts: [] };

interface Piece {
  end: number;
  text?: string;
  parts?: Part[];
  /** The name of an element that begins. */
  opens?: string;
  closes?: boolean;
}

function* piecesOf(text: string): Generator<Piece> {
  for (let at = 0; at < text.length;) {
    const next = text.indexOf("<", at);
    const end = next < 0 ? text.length : next;
    if (end > at) yield { end, text: withoutEntities(text.slice(at, end)) };
    if (next < 0) return;
    const piece = skippedAt(text, next) ?? closingAt(text, next) ?? elementAt(text, next);
    yield piece;
    at = piece.end;
  }
}

function closingAt(text: string, at: number): Piece | undefined {
  if (!text.startsWith("</", at)) return undefined;
  const close = text.indexOf(">", at);
  const end = close < 0 ? text.length : close;
  return { end: end + 1, closes: !isLook(text.slice(at + 2, end).trim()) };
}

function elementAt(text: string, at: number): Piece {
  const name = openingAt(text, at);
  if (name === undefined) return { end: at + 1, text: "<" };
  const { attributes, closed, end } = attributesFrom(text, at + 1 + name.length);
  if (isLook(name)) return { end };
  return { end, parts: attributes, ...(closed ? {} : { opens: localName(name) }) };
}

function isLook(name: string): boolean {
  return LOOKS.has(localName(name).toLowerCase());
}

function attributesFrom(text: string, start: number): { attributes: Part[]; closed: boolean; end: number } {
  const attributes: Part[] = [];
  let at = start;
  ATTRIBUTE.lastIndex = at;
  for (let found = ATTRIBUTE.exec(text); found; found = ATTRIBUTE.exec(text)) {
    const [, name = "", double, single, plain] = found;
    at = ATTRIBUTE.lastIndex;
    const value = withoutEntities(double ?? single ?? plain ?? "");
    if (!SCHEMA.test(name)) attributes.push({ key: localName(name), value });
  }
  const end = text.indexOf(">", at);
  if (end < 0) return { attributes, closed: true, end: text.length };
  return { attributes, closed: text.charAt(end - 1) === "/", end: end + 1 };
}
