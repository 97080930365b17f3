import { remembered } from "./remembered.ts";

/** An escape of a style sheet: a number with the blank that ends it, the end of a line, or a sign (CSS Syntax §4.3.7). */
const ESCAPE = /\\(?:([0-9a-f]{1,6})(?:\r\n|[ \t\r\n\f])?|(\r\n|[\n\r\f])|([^0-9a-f\r\n\f]))/gi;
/** What would end an address, or a string, if it stood there without its escape. */
const ENDS = /[\s"'()<>]/;

/** Returns a style sheet with its escapes resolved; those that a browser takes out of an address are gone. */
export const stylesRead = remembered((text): string =>
  text.replaceAll(ESCAPE, (_whole, hex?: string, line?: string, sign?: string) => {
    if (line !== undefined) return "";
    const code = hex === undefined ? undefined : Number.parseInt(hex, 16);
    const letter = code === undefined ? (sign ?? "") : letterOf(code);
    if (/[\t\r\n]/.test(letter)) return "";
    // The same in an address of the web.
    if (letter === "\\") return "/";
    return ENDS.test(letter) ? `%${(letter.codePointAt(0) ?? 0).toString(16).padStart(2, "0")}` : letter;
  }),
);

function letterOf(code: number): string {
  return code === 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)
    ? "\uFFFD"
    : String.fromCodePoint(code);
}

const TARGET = /\b(?:url|src)\(\s*|["'](?=\s*(?:(?:https?|ftps?|wss?|file):|[/\\]{2}))/gi;
/** The end of a line ends a string (CSS Syntax §4.3.5). */
const QUOTES = /["']/;

/** Returns what a style sheet without escapes loads: the targets of its functions, and strings that are addresses. */
export function* targetsOfStyles(styles: string): Generator<string> {
  const next = { ")": -1, '"': -1, "'": -1 };
  const endOf = (mark: keyof typeof next, from: number): number => {
    if (next[mark] < from) {
      const found = styles.indexOf(mark, from);
      next[mark] = found === -1 ? styles.length : found;
    }
    return next[mark];
  };
  for (const { 0: begin, index } of styles.matchAll(TARGET)) {
    const from = index + begin.length;
    const first = begin.length === 1 ? begin : styles.charAt(from);
    const is_string = QUOTES.test(first);
    const start = is_string && begin.length > 1 ? from + 1 : from;
    yield styles.slice(start, endOf(is_string ? (first as '"' | "'") : ")", start));
  }
}
