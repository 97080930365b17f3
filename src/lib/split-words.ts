/** A word of a text, and where it stands in it. */
export interface Word {
  text: string;
  from: number;
  to: number;
  /** Whether it is two signs of a script without blanks. */
  pair?: true;
  /** Whether it is a single sign of such a script: the last one of a run, or all there is of it. */
  single?: true;
}

/** What a word consists of. Marks belong to it: vowels of Thai and of the scripts of India are marks. */
const WORD = /[\p{L}\p{N}\p{M}]+/gu;
/** Scripts that write no blanks between words. Hangul does. */
const BLANKLESS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]+/gu;
const ACCENTS = /[\u0300-\u036f]/g;

/**
 * Yields the words of a text in order. Where its script has no blanks, each sign begins a word of two signs, which overlap:
 * so words of two signs are found as well as longer ones. The last sign of such a run stands alone once more.
 */
export function* wordsIn(text: string): Generator<Word> {
  for (const { 0: run, index } of text.matchAll(WORD)) {
    let at = 0;
    for (const { 0: signs, index: begins } of run.matchAll(BLANKLESS)) {
      if (begins > at) yield wordAt(run.slice(at, begins), index + at);
      yield* pairsOf(signs, index + begins);
      at = begins + signs.length;
    }
    if (at < run.length) yield wordAt(run.slice(at), index + at);
  }
}

/** From how many letters on a word tells what a text is about. */
const TELLING_CHARS = 3;

/** Returns the words of a text that tell what it is about: long ones, and pairs of signs. */
export function tellingWords(text: string): string[] {
  return Array.from(wordsIn(text)).flatMap((word) =>
    word.single !== true && (word.pair === true || word.text.length >= TELLING_CHARS) ? [word.text] : [],
  );
}

function* pairsOf(signs: string, from: number): Generator<Word> {
  let at = from;
  let before = "";
  for (const sign of signs) {
    if (before !== "") {
      yield { ...wordAt(before + sign, at), pair: true };
      at += before.length;
    }
    before = sign;
  }
  yield { ...wordAt(before, at), single: true };
}

function wordAt(text: string, from: number): Word {
  return { text, from, to: from + text.length };
}

/** Letters that may have an accent, or another form in lower case than ASCII has. */
const BEYOND_ASCII = /[^ -~\s]/;

/** A word or text without accents, in lower case: words that are the same to a search have the same. */
export function folded(word: string): string {
  if (!BEYOND_ASCII.test(word)) return word.toLowerCase();
  return normalForm("NFC", normalForm("NFD", word).replaceAll(ACCENTS, "")).toLowerCase();
}

/** Characters that marked texts have a use for: those for private use begin words, two invisible ones join and part them. */
const USED = /[\ue000-\uf8ff\u2063\u2064]/g;
const JOINT = "\u2064";
const GAP = "\u2063";
const REPEATED = /\u2064./gsu;
const UNSEEN = /[\ue000-\uf8ff\u2063]/g;
/** How many marks one character can stand for. */
const MARKS = 6_400;
const FIRST_MARK = 0xe0_00;

/** The mark of a number: two characters that no word of a text has. */
export function markOf(number: number): string {
  return String.fromCharCode(
    FIRST_MARK + (Math.floor(number / MARKS) % MARKS),
    FIRST_MARK + (number % MARKS),
  );
}

/**
 * Returns a text each of whose words begins with `mark`, so that an index of many texts keeps the words of each mark apart.
 * `plainText` returns what it was made of.
 */
export function markedText(text: string, mark: string): string {
  const plain = text.replaceAll(USED, " ");
  const parts: string[] = [];
  let end = 0;
  for (const { text: word, from, to } of wordsIn(plain)) {
    parts.push(from < end ? JOINT : from === end ? GAP : plain.slice(end, from), mark, word);
    end = to;
  }
  return parts.join("") + plain.slice(end);
}

export function plainText(marked: string): string {
  return marked.replaceAll(UNSEEN, "").replaceAll(REPEATED, "");
}
import { normalForm } from "./normal-form.ts";
