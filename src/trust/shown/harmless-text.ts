import { type LinkGuard, readMarkdown, withoutDisguise } from "../../mail/writing/markdown.ts";
import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";
import { endsInLink, guardMarkdown, isRefusedLink } from "./links.ts";

/** Raw HTML that could act or fetch where it is shown as such: by its name, or by having attributes at all. */
const ACTIVE_ELEMENT =
  /<(?=\/?(?:script|style|iframe|frame|frameset|img|picture|source|video|audio|track|object|embed|applet|form|input|button|meta|link|base|svg|math)\b|[!?]|[a-z][^\s<>/:]{0,60}[\s/])/gi;

/** Markdown without pictures from elsewhere and without links that may not stay; null if one of them cannot be found. */
export function harmlessMarkdown(text: string, guard: LinkGuard): string | null {
  for (const written of [text, withoutDisguise(text)]) {
    const bare = guardMarkdown(written, guard).replaceAll("![", "[").replaceAll(ACTIVE_ELEMENT, "&lt;");
    if (!DISGUISE.test(bare) || !showsStranger(bare, guard)) return bare;
  }
  return null;
}

/** Entities and escapes. A text without any says to a reader what it says to the guard. */
const DISGUISE = /&(?!(?:amp|lt|gt|quot);)|\\[!-/:-@[-`{-~]/;

/** Whether a link that may not stay comes out of it where it is shown, by escapes or character references. */
function showsStranger(text: string, guard: LinkGuard): boolean {
  const { links, words } = readMarkdown(text);
  const { left_out } = guard;
  for (const part of words) guard.clean(part);
  return guard.left_out > left_out || links.some((link) => isRefusedLink(link, guard));
}

/** The beginning of a cell behind anything that some table program takes for the end of one. */
const CELL_START = /(^|[\r\n,;\t|])([ "']*)(?=[=+\-@＝＋－＠])/g;
/** One cell or less: what stands between marks that may divide cells. */
const CELL = /[^\r\n,;\t|"]+/g;
const HARMLESS_CELL = /^(?:[+-]\d[\d .'’]*(?:e[+-]?\d+)?\s*%?|[\s-]+|\+)"?$/i;
const MAX_NUMBER_CHARS = 60;

/** A table without links that may not stay, none of whose cells is a formula: those can fetch, and carry off what stands in the others. */
export function harmlessCells(text: string, guard: LinkGuard): string {
  // A first line of this kind would have other marks divide the cells; what nobody sees may stand before a formula.
  const table = stripHiddenCharacters(text).text.replace(/^(\s*["']*)(?=sep\s*=)/i, "$1'");
  // A blank behind an address that stays, or the next cells would be a part of it to who reads the file as mere text.
  const known = table.replaceAll(CELL, (cell) => {
    const kept = guard.clean(cell);
    return endsInLink(kept) ? `${kept} ` : kept;
  });
  return known.replaceAll(CELL_START, (start: string, edge: string, quotes: string, at: number) => {
    const from = at + start.length;
    const cell = /^[^\r\n,;\t|]*/.exec(known.slice(from, from + MAX_NUMBER_CHARS))?.[0] ?? "";
    return cell.length < MAX_NUMBER_CHARS && HARMLESS_CELL.test(cell) ? start : `${edge}${quotes}'`;
  });
}

const DECLARATION = /^\uFEFF?\s*<\?xml\s[^<>]{0,500}\?>/i;
const MAX_DOCTYPE_CHARS = 2_000;
const DOCTYPE_END = /\s{0,100}>/y;
const INSTRUCTION = /<\?[^<>]{0,5000}\?>/g;
const NUMBERED = /&#(x[0-9a-f]{1,6}|\d{1,7});/gi;
/** Vocabularies that a browser runs, and what is left of a document type that was not understood. */
const ACTIVE_XML =
  /<!DOCTYPE|<!ENTITY|<!ATTLIST|<\?|1999\/xhtml|2000\/svg|XSL\/Transform|MathML|1999\/xlink|XInclude/i;

/** XML without document type, style sheets and other instructions; null if it could act all the same. */
export function harmlessXml(text: string): string | null {
  const bare = withoutDoctype(text.replace(DECLARATION, "")).replaceAll(INSTRUCTION, "");
  const read = bare.replaceAll(NUMBERED, (_whole, code: string) =>
    String.fromCodePoint(Math.min(Number(code.replace(/^x/i, "0x")), 0x10ffff)),
  );
  return ACTIVE_XML.test(read) ? null : `<?xml version="1.0" encoding="UTF-8"?>\n${bare.trim()}\n`;
}

/** Returns a text without its first document type that has an end, with an internal subset or none. */
function withoutDoctype(text: string): string {
  const nextMark = nextOf(text, /[[\]>]/g);
  const nextClose = nextOf(text, /\]/g);
  for (const { index, 0: name } of text.matchAll(/<!DOCTYPE/gi)) {
    const from = index + name.length;
    const mark = nextMark(from);
    if (mark - from > MAX_DOCTYPE_CHARS) continue;
    DOCTYPE_END.lastIndex = text[mark] === "[" ? nextClose(mark + 1) + 1 : mark;
    if (text[mark] === "]" || !DOCTYPE_END.test(text)) continue;
    return text.slice(0, index) + text.slice(DOCTYPE_END.lastIndex);
  }
  return text;
}

/** Finds the first of some marks at or behind a place, or the end; the places asked for go forward. */
function nextOf(text: string, marks: RegExp): (from: number) => number {
  let next = -1;
  return (from) => {
    if (next >= from) return next;
    marks.lastIndex = from;
    next = marks.exec(text)?.index ?? text.length;
    return next;
  };
}
