import { bareLetters } from "../lib/bare-letters.ts";

/** Keeps what is noted of short texts apart: they are everybody's words, and by themselves no reason against a mail. */
const SHORT = "a short text\0";
/** One word is everybody's; a longer text is known again by words in a row. */
const MIN_WORDS = 2;
const MAX_WORDS = 8;
const MIN_LETTERS = { latin: 6, other: 4 };
/** What a program puts between a greeting and the text that it was given. */
const BETWEEN = /[\n,;:.!?\u3002\uff0c\uff01\uff1f]+/;
/** A text may have some of those marks itself. */
const MAX_PARTS = 4;
/** More of a mail is not looked through. */
const MAX_SEGMENTS = 500;

/** Returns what is noted of a text that is too short to be known again anywhere in a mail. */
export function shortOnes(texts: string[]): string[] {
  return [...new Set(texts.filter(isShort).map((text) => SHORT + bareLetters(text)))];
}

/** Returns what such a text is noted as, for each stretch of a mail that may be one: between marks and ends of lines. */
export function stretchesOf(text: string): string[] {
  const segments = text
    .split(BETWEEN)
    .filter((segment) => segment.trim() !== "")
    .slice(0, MAX_SEGMENTS);
  return shortOnes(
    segments.flatMap((_, at) =>
      Array.from({ length: MAX_PARTS }, (_part, more) => segments.slice(at, at + more + 1).join(" ")),
    ),
  );
}

function isShort(text: string): boolean {
  const words = text.trim().split(/\s+/).length;
  const { length } = bareLetters(text);
  if (!/\p{Script=Latin}/u.test(text)) return length >= MIN_LETTERS.other && length <= 4 * MAX_WORDS;
  return words >= MIN_WORDS && words <= MAX_WORDS && length >= MIN_LETTERS.latin;
}
