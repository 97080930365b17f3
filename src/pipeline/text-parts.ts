import { bareLetters } from "../lib/bare-letters.ts";
import { MIN_RUN_LETTERS } from "./text-meetings.ts";

/** Fewer letters of a whole text are everybody's words. */
const MIN_LETTERS = 12;
const MIN_ORDER_LETTERS = 4;
const ORDER = /[@$+]\p{L}|[-\u2013\u2014]\p{L}/u;
/** A place may be shorter still: a telephone number, a site, a repository, a title between quotation marks. */
const MIN_PLACE_LETTERS = 2;
const PLACE = /\d\D*\d\D*\d|[\p{L}\p{N}][./:@#\\][\p{L}\p{N}]|(?<!\p{L})["'`\u201c\u201e\u2018\u00ab]\p{L}/u;
/** A day or a moment, which is no place, and which the owner may well write as a tool does. */
const DATE = /^\d{4}-\d\d-\d\d(?:[T ][\d:.+Z-]{4,30})?$/;
/** So many words in a row are nobody's by chance, wherever a program that mails them breaks lines or adds its own. */
const RUN_WORDS = 8;
/** A longer word in a script of other letters than Latin is a sentence without blanks. */
const LONG_WORD = 16;
/** A text without blanks that is as long is remembered by some of its letters in a row; asked for are those of each long line. */
const MIN_BLANKLESS = 200;
const MIN_LINE_BLANKLESS = 60;
const MAX_SPANS = 64;
const SPAN_STEP = 12;
/** More letters of a mail are not looked through for such texts. */
export const MAX_SPAN_LETTERS = 20_000;
/** More of a text is not looked at. */
export const MAX_CHARS = 131_072;
const TAG = /<[^<>]*>/g;
const LATIN = /^[\p{Script=Latin}\p{N}]*$/u;
/** A sign by itself in scripts that put no spaces between words. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Khmer}\p{Script=Lao}\p{Script=Myanmar}]|[\p{L}\p{N}]+/gu;

/** The letters of texts that are nobody's by chance. An order may be short. */
export function wholes(texts: string[]): string[] {
  return [
    ...longerThan(texts, MIN_LETTERS),
    ...longerThan(
      texts.filter((text) => ORDER.test(text)),
      MIN_ORDER_LETTERS,
    ),
    ...longerThan(
      texts.filter((text) => PLACE.test(text) && !DATE.test(text.trim())),
      MIN_PLACE_LETTERS,
    ),
  ];
}

/** A text as plain text shows it whose tags are taken out. */
export function plainOf(text: string): string {
  return text.trim().slice(0, MAX_CHARS).replaceAll(TAG, "\n");
}

/** A text whose words between angle brackets are words, as plain text shows them. */
export function withoutMarks(text: string): string {
  return text.trim().slice(0, MAX_CHARS).replaceAll(/[<>]/g, " ");
}

export function linesAndParagraphsOf(text: string): string[] {
  return [...text.split(/\n[ \t\r]*\n/), ...text.split("\n")];
}

export function longerThan(texts: string[], letters: number): string[] {
  return texts.map(bareLetters).filter(({ length }) => length >= letters);
}

export function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(WORD) ?? [];
  return words.flatMap((word) => (word.length > LONG_WORD && !LATIN.test(word) ? Array.from(word) : [word]));
}

/** All words in a row of which nobody writes so many by chance, as letters alone. */
export function runsOf(text: string): string[] {
  const words = wordsOf(text);
  const runs: string[] = [];
  for (let from = 0; from + RUN_WORDS <= words.length; from += 1) {
    let run = words.slice(from, from + RUN_WORDS).join("");
    // Eight signs of other scripts without blanks are two words.
    const least = /\p{Script=Han}/u.test(run) ? RUN_WORDS : MIN_RUN_LETTERS;
    for (let to = from + RUN_WORDS; run.length < least && to < words.length; to += 1) run += words[to] ?? "";
    if (run.length >= least) runs.push(run);
  }
  return runs;
}

/** Some letters in a row of each long text without blanks. */
export function spansOf(text: string): string[] {
  return blanklessOf(text, MIN_BLANKLESS).flatMap((letters) =>
    spansIn(letters, Math.max(SPAN_STEP, Math.ceil(letters.length / MAX_SPANS))),
  );
}

/** All letters in a row of each text and line without blanks that such a text may have become. */
export function allSpansOf(text: string): string[] {
  let left = MAX_SPAN_LETTERS;
  return blanklessOf(text, MIN_LINE_BLANKLESS).flatMap((letters) => {
    const looked = letters.slice(0, left);
    left -= looked.length;
    return spansIn(looked, 1);
  });
}

function blanklessOf(text: string, least: number): string[] {
  const long = text.split(/\s+/).filter(({ length }) => length >= least);
  return longerThan(long, least);
}

export function spansIn(letters: string, step: number): string[] {
  const spans: string[] = [];
  for (let from = 0; from + MIN_RUN_LETTERS <= letters.length; from += step)
    spans.push(letters.slice(from, from + MIN_RUN_LETTERS));
  return spans;
}
