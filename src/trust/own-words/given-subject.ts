import { namesIn } from "./names-in-text.ts";

/** "Emailing: " or "Emailing - ". */
const LABEL = /^.{1,40}?(?:[:：]|\s[–-])\s/u;

/** Whether a subject is made of the names of the mail's files, as programs do that mail one. */
export function namesFiles(subject: string, filenames: readonly string[]): boolean {
  const names = filenames
    .flatMap((name) => [name, name.replace(/\.[^.]*$/, "")])
    .map(lettersOf)
    .filter((name) => name !== "")
    .sort((one, other) => other.length - one.length);
  return [subject, subject.replace(LABEL, "")].some((text) => {
    const letters = lettersOf(text);
    if (letters === "") return false;
    const left = names.reduce((rest, name) => rest.replaceAll(name, ""), letters);
    return left === "" || lettersOf(withoutFileNames(text, filenames)) === "";
  });
}

/** The first of the signs that stand for the names; they mean nothing to anybody (Unicode §23.5). */
const FIRST_SIGN = 0xf0000;
const SIGNS = /[\u{F0000}-\u{FFFFD}]/gu;

/** A text in which each name of a file is one sign without a meaning. */
export interface WithoutNames {
  text: string;
  /** Returns words of that text with the names in them again. */
  shown: (words: string) => string;
  /** Returns words of that text with blanks in place of the names. */
  blank: (words: string) => string;
}

/**
 * Takes the names of files out of a text. Mail programs, and programs that share something, write them into the mails that
 * they begin (`(See attached file: …)`), and whoever made a file has chosen its name: an address or a flag in it is
 * nobody's order. Of a name without its ending only one that could be an order is taken out. The subjects of attached
 * mails are such names too.
 */
export function hideFileNames(text: string, filenames: readonly string[]): WithoutNames {
  const spans = namesIn(text, filenames);
  const used = new Set(text.match(SIGNS));
  const signs = new Map<string, string>();
  let hidden = "";
  let from = 0;
  let code = FIRST_SIGN;
  for (const { start, end } of spans) {
    while (used.has(String.fromCodePoint(code))) code += 1;
    const sign = String.fromCodePoint(code);
    signs.set(sign, text.slice(start, end));
    hidden += text.slice(from, start) + sign;
    from = end;
    code += 1;
  }
  const replaced = (words: string, by: (sign: string) => string): string =>
    signs.size === 0 ? words : words.replaceAll(SIGNS, by);
  return {
    text: hidden + text.slice(from),
    shown: (words) => replaced(words, (sign) => signs.get(sign) ?? sign),
    blank: (words) => replaced(words, (sign) => (signs.has(sign) ? " " : sign)),
  };
}

/** Returns a text with blanks in place of the names of files. */
export function withoutFileNames(text: string, filenames: readonly string[]): string {
  const hidden = hideFileNames(text, filenames);
  return hidden.blank(hidden.text);
}

/** Returns the letters and numbers of a text in small letters, by which texts are compared. */
export function lettersOf(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}
