import { bareLetters } from "../../lib/bare-letters.ts";
import { isUnparted, namesIn } from "./names-in-text.ts";

/** "Emailing: " or "Emailing - ". */
const LABEL = /^.{1,40}?(?:[:：]|\s[–-])\s/u;

/** Returns whether a subject consists of the names of the mail's files, as programs that send files write it. */
export function namesFiles(subject: string, filenames: readonly string[]): boolean {
  const names = filenames
    .flatMap((name) => [name, name.replace(/\.[^.]*$/, "")])
    .map(bareLetters)
    .filter((name) => name !== "")
    .sort((one, other) => other.length - one.length);
  return [subject, subject.replace(LABEL, "")].some((text) => {
    const letters = bareLetters(text);
    if (letters === "") return false;
    const left = names.reduce((rest, name) => rest.replaceAll(name, ""), letters);
    return left === "" || bareLetters(hideFileNames(text, filenames).text) === "";
  });
}

/** The first of the private-use characters (Unicode §23.5) that replace names. */
const FIRST_SIGN = 0xf0000;
const SIGNS = /[\u{F0000}-\u{FFFFD}]/gu;

/** A text with each file name replaced by one meaningless character. */
export interface WithoutNames {
  text: string;
  /** Returns part of that text with the names restored. */
  shown: (words: string) => string;
  /** Returns part of that text with blanks in place of the names, and of addresses and paths with a name inside. */
  blank: (words: string) => string;
}

/**
 * Replaces the file names in a text. Programs write them into mails that they begin (`(See attached file: …)`), and
 * whoever made a file chose its name, so an address or flag in it is nobody's command. A name without its extension is
 * replaced only if it could be a command. Subjects of attached mails count as names too.
 */
export function hideFileNames(text: string, filenames: readonly string[]): WithoutNames {
  const known = KNOWN.get(filenames) ?? new Map<string, WithoutNames>();
  KNOWN.set(filenames, known);
  const found = known.get(text) ?? hideNames(text, filenames);
  known.set(text, found);
  return found;
}

/** What was found already in the texts of a run, which are asked about again and again, by the list of its names. */
const KNOWN = new WeakMap<readonly string[], Map<string, WithoutNames>>();

function hideNames(text: string, filenames: readonly string[]): WithoutNames {
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
  return {
    text: hidden + text.slice(from),
    shown: (words) => (signs.size === 0 ? words : words.replaceAll(SIGNS, (sign) => signs.get(sign) ?? sign)),
    blank: (words) => (signs.size === 0 ? words : withoutJoined(words, (sign) => signs.has(sign))),
  };
}

/** What separates an address or a path from its neighbours. */
const PARTS = /[\s"<>()[\]{},;“”„«»「」『』]/u;
const LETTER = /[\p{L}\p{N}]/u;

/**
 * Blanks out each sign that stands for a name, and the letters joined to it. A file called `uk.` would otherwise leave
 * `bob@company.co` of `bob@company.co.uk`, and whoever made the file may own that.
 */
function withoutJoined(words: string, isName: (sign: string) => boolean): string {
  let kept = "";
  let from = 0;
  for (const { 0: sign, index } of words.matchAll(SIGNS)) {
    if (index < from || !isName(sign)) continue;
    const start = joinedUntil(words, { at: index, step: -1, end: from });
    kept += `${words.slice(from, start)} `;
    from = joinedUntil(words, { at: index + sign.length, step: 1, end: words.length });
  }
  return kept + words.slice(from);
}

/** Returns the end of the letters joined to a position; punctuation after them belongs to the sentence. */
function joinedUntil(words: string, { at, step, end }: { at: number; step: 1 | -1; end: number }): number {
  let until = at;
  for (let next = at; next !== end; next += step) {
    const char = words.charAt(step === 1 ? next : next - 1);
    if (PARTS.test(char) || isUnparted(char)) break;
    // Half of a pair is a sign, or a letter of a rare script.
    if (LETTER.test(char) || /[\uD800-\uDFFF]/.test(char)) until = next + step;
  }
  return until;
}

/** Returns a text with blanks in place of the names of files, and of what is joined to them. */
export function withoutFileNames(text: string, filenames: readonly string[]): string {
  const hidden = hideFileNames(text, filenames);
  return hidden.blank(hidden.text);
}
