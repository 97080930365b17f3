import { normalForm } from "../../lib/normal-form.ts";
import { decodeWords } from "../../mail/reading/headers.ts";
import { stripHiddenCharacters } from "../own-words/hidden-characters.ts";

/** How often percent-encoding is decoded: a URL is often decoded in transit, and again where it is used. */
const DECODINGS = 2;
/** Characters that NFKC changes, and some more. */
const NOT_PLAIN = /(?!\p{ASCII})\p{Changes_When_NFKC_Casefolded}/gu;
/** References that lenient programs read without a semicolon, in any capitals, and with letters right behind them. */
const LENIENT: Record<string, string> = {
  period: ".",
  sol: "/",
  bsol: "\\",
  colon: ":",
  commat: "@",
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  plus: "+",
  dollar: "$",
  ndash: "\u2013",
  mdash: "\u2014",
  nbsp: "\u00A0",
  // These draw nothing.
  shy: "\u00AD",
  zwj: "\u200D",
  zwnj: "\u200C",
  lrm: "\u200E",
  rlm: "\u200F",
  zerowidthspace: "\u200B",
  negativeverythinspace: "\u200B",
  negativethinspace: "\u200B",
  negativemediumspace: "\u200B",
  negativethickspace: "\u200B",
  nobreak: "\u2060",
};
const LENIENT_NAMES = Map.groupBy(Object.keys(LENIENT), (name) => name.slice(0, 2));
/** The longest name among them. */
const MAX_LENIENT_CHARS = 23;
/** A reference of HTML or XML, of any length, with what decides in the value of an attribute whether it is one. */
const REFERENCE = /&(?:#x[0-9a-f]+|#\d+|[a-z][a-z0-9]+)[;=]?/gi;

/** The tables of HTML, which are loaded with the first reference: a server that nobody writes to needs none of them. */
function tables(): typeof import("entities/decode") {
  return require("entities/decode");
}

/** Cache of the plain forms of letters; some thousands of letters have one. */
const known = new Map<string, string>();

function plainest(char: string): string {
  let plain = known.get(char);
  if (plain === undefined) known.set(char, (plain = normalForm("NFKC", char)));
  return plain;
}

let last = { of: "", read: "" };

/**
 * Returns a text as programs read a URL or address: decoded, in plain letters (UTS #46), without invisible and optional
 * characters (RFC 5322 §3.2.4). Keeps the last result, because the same text is asked for repeatedly.
 */
export function asRead(text: string): string {
  if (last.of !== text) last = { of: text, read: readAnew(text) };
  return last.read;
}

function readAnew(text: string): string {
  let plain = text;
  for (let nth = 0, before = ""; nth < DECODINGS && plain !== before; nth += 1) {
    before = plain;
    plain = decoded(plain);
  }
  // Normalizes letter by letter: normalizing many marks on one letter takes quadratic time.
  plain = stripHiddenCharacters(plain).text.replaceAll(NOT_PLAIN, plainest);
  return plain
    .replaceAll(/[\u3002\uFF61]/g, ".")
    .replaceAll('"', "")
    .replaceAll("\\", "/");
}

function decoded(text: string): string {
  const plain = wordsDecoded(text)
    .replaceAll(ESCAPED, (whole, four?: string, some?: string, two?: string) =>
      charOf(whole, four ?? some ?? two),
    )
    .replaceAll(/(?:%[0-9a-f]{2})+/gi, (codes) => Buffer.from(codes.replaceAll("%", ""), "hex").toString());
  return withoutEntities(plain);
}

/**
 * Returns a text with its character references replaced: numbers of any length, and every name that HTML has, with or
 * without a semicolon. Names that stand in a query (`&region=eu`) stay, as they do in the value of an attribute.
 */
export function withoutEntities(text: string): string {
  return text.includes("&") ? text.replaceAll(REFERENCE, lettersOf) : text;
}

/** References that were read: a text has the same ones again and again. */
const MAX_READ = 2_000;
const MAX_READ_CHARS = 40;
const references = new Map<string, string>();

function lettersOf(reference: string): string {
  const found = references.get(reference);
  if (found !== undefined) return found;
  const letters = lettersAnew(reference);
  if (references.size >= MAX_READ) references.clear();
  if (reference.length <= MAX_READ_CHARS) references.set(reference, letters);
  return letters;
}

function lettersAnew(reference: string): string {
  const read = tables().decodeHTMLAttribute(reference);
  if (read !== reference) return read;
  const word = reference.slice(1, 1 + MAX_LENIENT_CHARS).toLowerCase();
  const name = LENIENT_NAMES.get(word.slice(0, 2))?.find((one) => word.startsWith(one));
  return name === undefined
    ? reference
    : `${LENIENT[name]}${reference.slice(1 + name.length).replace(/^;/, "")}`;
}

/** An escaped character in JSON and most programming languages. */
const ESCAPED = /(?<!\\)\\+(?:u([0-9a-f]{4})|u\{([0-9a-f]{1,6})\}|x([0-9a-f]{2}))/gi;
const WORD = /=\?([^?*]{1,40})(?:\*[^?]{0,40})?\?([bq])\?([^?]*)\?=/gi;

/**
 * Decodes encoded words (RFC 2047), also with unknown character sets and with spaces inside, because mail programs are
 * lenient.
 */
function wordsDecoded(text: string): string {
  if (!text.includes("=?")) return text;
  const plain = text.replaceAll(WORD, (_whole, charset: string, form: string, data: string) => {
    const blank = /^q$/i.test(form) ? "_" : "";
    return `=?${knownSet(charset)}?${form}?${data.replaceAll(/\s/g, blank)}?=`;
  });
  return decodeWords(plain);
}

function knownSet(charset: string): string {
  try {
    return new TextDecoder(charset.trim() as Bun.Encoding).encoding;
  } catch {
    return "utf-8";
  }
}

function charOf(whole: string, hex = ""): string {
  const code = Number.parseInt(hex, 16);
  return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
}
