import { type LinkGuard, readMarkdown, withoutDisguise } from "../../mail/writing/markdown.ts";
import { withoutEntities } from "../guard/as-read.ts";
import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";
import { attributesIn } from "./attributes.ts";
import { endsInLink, guardMarkdown, isRefusedLink } from "./links.ts";

/**
 * The beginning of what could run or fetch something where Markdown is shown with HTML: of all but the simplest elements, as
 * whatever they are called they may have attributes.
 */
const ACTIVE_ELEMENT =
  /<(?=[!?/a-z])(?!\/?(?!(?:script|style|i?frame|frameset|img|picture|source|video|audio|track|object|embed|applet|form|input|button|meta|link|base|svg|math)\b)[a-z][a-z0-9]{0,20}>)/gi;
/** An address in angle brackets: below an element these are one as well. */
const AUTOLINK = /<((?:https?:\/\/|mailto:)[^\s<>]{1,4000})>/gi;

/** The first line of the data of a page, some of which is shown as a picture: below an empty line it is text. */
const FRONT_MATTER = /^\uFEFF?(?=(?:---|\+\+\+|;;;|\{))/;

/** Returns Markdown without remote pictures and refused links; null if one of them cannot be located. */
export function harmlessMarkdown(text: string, guard: LinkGuard): string | null {
  for (const written of [text, withoutDisguise(text)]) {
    const bare = guardMarkdown(written, guard)
      .replaceAll(/(?<!!)!+\[/g, "[")
      .replaceAll(AUTOLINK, " $1 ")
      .replaceAll(ACTIVE_ELEMENT, "&lt;");
    if (!DISGUISE.test(bare) || !showsStranger(bare, guard)) return bare.replace(FRONT_MATTER, "\n$&");
  }
  return null;
}

/**
 * Returns the whole of an answer as a file that does no more than its mail. What is guarded is guarded as it is written,
 * and programs that show Markdown read `https&colon;//` as an address.
 */
export function harmlessWhole(text: string, guard: LinkGuard): string {
  return harmlessMarkdown(text, guard) ?? literalMarkdown(text);
}

const LITERAL: Record<string, string> = { "&": "&amp;", "<": "&lt;", "[": "\\[", "\\": "\\\\" };

/** Returns Markdown in which every entity, escape, tag, link and picture is shown as it is written. */
export function literalMarkdown(text: string): string {
  return text.replaceAll(/[&<[\\]/g, (char) => LITERAL[char] ?? char);
}

/** Entities, escapes, and addresses that a blank does not end. A text without any reads the same to a person and to the guard. */
const DISGUISE = /[(:]\s*<|&(?!(?:amp|lt|gt|quot);)|\\[!-/:-@[-`{-~]/;

/** Returns whether a refused link appears once escapes and character references are resolved. */
function showsStranger(text: string, guard: LinkGuard): boolean {
  const { links, words } = readMarkdown(text);
  const { left_out } = guard;
  for (const part of words) guard.clean(part);
  return guard.left_out > left_out || links.some((link) => isRefusedLink(link, guard));
}

/** The beginning of a formula in a cell, behind anything that some spreadsheet program takes for a separator. */
const CELL_START = /(^|[\r\n,;\t|])([ "']*)(?=[=+\-@＝＋－＠])/g;
/** A cell or part of one: text between possible separators. */
const CELL = /[^\r\n,;\t|"]+/g;
const HARMLESS_CELL = /^(?:[+-]\d[\d .'’]*(?:e[+-]?\d+)?\s*%?|[\s-]+|\+)"?$/i;
const MAX_NUMBER_CHARS = 60;

/**
 * Returns a table without refused links and without formulas: these can fetch URLs, and send the content of other
 * cells.
 */
export function harmlessCells(text: string, guard: LinkGuard): string {
  // A first line `sep=` would change the separator; invisible characters could hide the beginning of a formula.
  const table = stripHiddenCharacters(text).text.replace(/^(\s*["']*)(?=sep\s*=)/i, "$1'");
  // Adds a space behind a kept URL, or a reader of the plain text would see the next cells as part of it.
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
/** Remains of a document type or an instruction that was not understood. */
const ACTIVE_XML = /<!DOCTYPE|<!ENTITY|<!ATTLIST|<!ELEMENT|<!NOTATION|<\?/i;
/** Longer ones are none of data. */
const MAX_NAMESPACE_CHARS = 2_000;
const NAMESPACE = /^xmlns(?::|$)/;
/**
 * Namespaces that no program acts on when it opens a file: those of data. A browser runs the scripts of XHTML and SVG and
 * an office program the formulas of its own formats, and what others do is not known, so any other is refused.
 */
const HARMLESS_NAMESPACES = [
  // Names of what has no meaning but to whoever made it up.
  /^https?:\/\/(?:[a-z0-9-]{1,63}\.)?example\.(?:com|org|net)(?:\/[\w./-]*)?#?$/,
  // Invoices, payments, and data of administrations.
  /^urn:(?:oasis:names:specification:ubl|un:unece:uncefact|iso:std:iso:20022|cen\.eu:en16931)[\w:.-]*$/,
  /^http:\/\/www\.w3\.org\/(?:XML\/1998\/namespace|2001\/XMLSchema(?:-instance)?|1999\/02\/22-rdf-syntax-ns#|2000\/01\/rdf-schema#|2004\/02\/skos\/core#|2005\/Atom)$/,
  /^http:\/\/purl\.org\/(?:dc\/(?:elements\/1\.1|terms|dcmitype)|rss\/1\.0)\/$/,
  /^https?:\/\/www\.sitemaps\.org\/schemas\/sitemap\/0\.9$|^http:\/\/www\.google\.com\/schemas\/sitemap-[a-z]{1,10}\/\d\.\d$/,
  /^http:\/\/www\.topografix\.com\/GPX\/1\/[01]$/,
  /^https?:\/\/schema\.org\/?$|^http:\/\/maven\.apache\.org\/POM\/4\.0\.0$/,
];

/**
 * Returns XML without document type, style sheets and other processing instructions; null if it could still execute
 * something.
 */
export function harmlessXml(text: string): string | null {
  const bare = withoutDoctype(text.replace(DECLARATION, "")).replaceAll(INSTRUCTION, "");
  const is_data = !ACTIVE_XML.test(bare) && isOfData(bare);
  return is_data ? `<?xml version="1.0" encoding="UTF-8"?>\n${bare.trim()}\n` : null;
}

/** Returns whether each namespace of an XML text is one of data, as programs read them: in whatever numbers they are written. */
function isOfData(text: string): boolean {
  for (const { name, value } of attributesIn(text)) {
    if (!NAMESPACE.test(name)) continue;
    if (value.length > MAX_NAMESPACE_CHARS) return false;
    const namespace = withoutEntities(value);
    if (namespace !== "" && !HARMLESS_NAMESPACES.some((harmless) => harmless.test(namespace))) return false;
  }
  return true;
}

/** Returns a text without its first complete document type declaration, with or without an internal subset. */
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

/** Returns a function that finds the first match at or behind a position, or the end. Positions must not decrease. */
function nextOf(text: string, marks: RegExp): (from: number) => number {
  let next = -1;
  return (from) => {
    if (next >= from) return next;
    marks.lastIndex = from;
    next = marks.exec(text)?.index ?? text.length;
    return next;
  };
}
