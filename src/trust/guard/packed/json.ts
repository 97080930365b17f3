import type { Part, Reading } from "./part.ts";

const TOKEN =
  /[\s,\uFEFF]*(?:([[{])|([\]}])|(:)|(["'])|([+-]?\.?\d[\w.]*(?:(?<=e)[+-]\d+)?)|([+-]?[\p{L}_$][\p{L}\p{N}_$-]*)|$)/iuy;
const COMMENT = /[\s,\uFEFF]*\/([/*])/y;
const CONSTANT = /^[+-]?(?:true|false|null|undefined|none|nan|infinity)$/i;

/**
 * Reads every name and value of a JSON text, also both values of a duplicate name. Accepts looser forms as programs do:
 * comments, names and quotes as in JavaScript, several texts in a row. What follows the first complete value need not
 * be JSON. Undefined for texts that begin with neither a bracket nor a comment.
 */
export function readJson(text: string, max_chars: number): Reading | undefined {
  if (!/^[\s\uFEFF]*(?:[[{]|\/[/*])/.test(text)) return undefined;
  const outline = newOutline();
  let at = 0;
  while (at < text.length) {
    if (at > max_chars) return { parts: [], chars: at };
    const token = tokenAt(text, at) ?? commentAt(text, at);
    if (token === undefined || (token.found !== undefined && !outline.take(token.found)))
      return { parts: outline.whole(), chars: at };
    at = token.end;
  }
  return { parts: outline.all(), chars: text.length };
}

interface Token {
  /** The match of TOKEN; undefined for whole strings. */
  found?: RegExpExecArray;
  end: number;
}

function tokenAt(text: string, at: number): Token | undefined {
  TOKEN.lastIndex = at;
  const found = TOKEN.exec(text);
  if (found === null) return undefined;
  const start = TOKEN.lastIndex;
  const [, , , , quote] = found;
  if (quote === undefined) return { found, end: start };
  const end = stringEnd(text, start, quote);
  if (end === undefined) return undefined;
  found[4] = text.slice(start - 1, end);
  return { found, end };
}

/** Returns the end of a string, found by a loop because a pattern takes ten times as long. */
function stringEnd(text: string, start: number, quote: string): number | undefined {
  let from = start;
  for (let at = text.indexOf(quote, from); at !== -1; at = text.indexOf(quote, from)) {
    let escapes = 0;
    while (at - escapes > from && text.charAt(at - escapes - 1) === "\\") escapes += 1;
    from = at + 1;
    if (escapes % 2 === 0) return from;
  }
  return undefined;
}

function commentAt(text: string, at: number): Token | undefined {
  COMMENT.lastIndex = at;
  const [, kind] = COMMENT.exec(text) ?? [];
  if (kind === undefined) return undefined;
  const close = kind === "/" ? "\n" : "*/";
  const found = text.indexOf(close, COMMENT.lastIndex);
  return { end: found < 0 ? text.length : found + close.length };
}

interface Outline {
  /** Consumes a token; returns false for one that JSON cannot have there. */
  take: (token: RegExpExecArray) => boolean;
  all: () => Part[];
  /** Returns the parts of complete values. */
  whole: () => Part[];
}

function newOutline(): Outline {
  const parts: Part[] = [];
  const outer: (string | null)[] = [];
  let key: string | null = null;
  let ended = 0;
  /** The last string or word: a name if a colon follows. */
  let open: { text: string; is_word: boolean } | undefined;

  const settle = (): boolean => {
    if (open?.is_word === true) return false;
    if (open !== undefined) parts.push({ key, value: open.text });
    open = undefined;
    return true;
  };
  const name = (): boolean => {
    if (open === undefined) return false;
    parts.push({ key: "", value: open.text });
    key = open.text;
    open = undefined;
    return true;
  };
  const close = (): boolean => {
    key = outer.pop() ?? null;
    if (outer.length === 0) ended = parts.length;
    return true;
  };
  return {
    take([, opening, closing, colon, quoted, number, word]) {
      if (colon !== undefined) return name();
      if (!settle()) return false;
      if (closing !== undefined) return close();
      if (opening !== undefined) outer.push(key);
      if (quoted !== undefined) open = { text: unquoted(quoted), is_word: false };
      if (number !== undefined) parts.push({ key, value: numberOf(number) });
      if (word !== undefined && !CONSTANT.test(word)) open = { text: word, is_word: true };
      return true;
    },
    all: () => (settle() ? parts : parts.slice(0, ended)),
    whole: () => parts.slice(0, ended),
  };
}

function numberOf(text: string): number | string {
  const number = Number(text.replaceAll("_", ""));
  return Number.isNaN(number) ? text : number;
}

const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|u\{0*([0-9a-fA-F]{1,6})\}|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|[^])/g;
const CONTROLS: Record<string, string> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", "\n": "" };

function unquoted(quoted: string): string {
  const text = quoted.slice(1, -1);
  if (!text.includes("\\")) return text;
  try {
    // `JSON.parse` is many times faster, if it accepts the string.
    return String(JSON.parse(quoted));
  } catch {
    return unescaped(text);
  }
}

function unescaped(text: string): string {
  return text.replaceAll(ESCAPE, (whole, ...found: (string | undefined)[]) => {
    const hex = found.slice(0, 4).find((one) => one !== undefined);
    if (hex === undefined) return CONTROLS[whole.slice(1)] ?? whole.slice(1);
    const code = Number.parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}
