import { normalForm } from "../../lib/normal-form.ts";
import { YES } from "../own-words/consent.ts";

/** A longer first line is no piece that a template puts in place. */
const MAX_PIECE_CHARS = 60;
/** What a template puts a value in place of, but for what stands in brackets. */
const PLACE = /[%$:@#][\p{L}_]\w*/gu;
const DIGITS = 6;
/** From more numbers than these the right one could be found out, by which of them may not be written. */
const MAX_NUMBERS = 250;

/**
 * Whether values, each in several readings, could be put together to a yes with one of the numbers, in any order: a template puts
 * values together in its own, a page may turn them round. Numbers alone are no yes. Beside one, very many are taken for one
 * whatever they are, as otherwise the right one could be found out by asking again with fewer of them.
 */
export function mayBeYesOf(values: readonly string[][], numbers: readonly string[]): boolean {
  const words = new Set<string>();
  const all: string[] = [];
  for (const forms of values) {
    const pieces = forms.map(pieceOf).filter((piece) => piece !== undefined);
    for (const { word } of pieces) words.add(word);
    all.push(...new Set(pieces.flatMap(({ digits }) => digits)));
  }
  const says = YES.some((yes) => isMadeOf(yes, words));
  if (!says) return false;
  if (waysTo(DIGITS, lengthsOf(all)) > MAX_NUMBERS) return true;
  const known = new Set(all);
  return numbers.some((number) => isMadeOf(number, known));
}

interface Piece {
  word: string;
  digits: string[];
}

/** The first line of a text as a piece of a consent, if it is a word, or a yes with numbers, or numbers alone. */
function pieceOf(text: string): Piece | undefined {
  const [line = ""] = text
    .trim()
    .slice(0, 4 * MAX_PIECE_CHARS)
    .split(/[\r\n]/, 1);
  const plain = line.replaceAll(PLACE, "").trim();
  if (plain.length > MAX_PIECE_CHARS) return undefined;
  const [begin = "", letters = ""] = /^[^\p{L}\p{N}]*(\p{L}*)[ ,:]{0,2}/u.exec(plain) ?? [];
  const word = normalForm("NFKC", letters).toLowerCase();
  const rest = plain.slice(begin.length).replace(/[.!]$/, "");
  const digits = rest.match(/\d+/g) ?? [];
  // A price, a day or an amount with its unit is put in place as a whole.
  const may_end_yes = YES.some((yes) => yes.endsWith(word));
  if (/[\p{L}.,:;/%-]/u.test(rest) || (digits.length > 0 && !may_end_yes)) return undefined;
  return { word, digits: digits.filter(({ length }) => length <= DIGITS) };
}

/** Whether a word or number is some of the pieces, one behind the other. */
function isMadeOf(whole: string, pieces: ReadonlySet<string>): boolean {
  const ends = new Set([0]);
  for (let end = 1; end <= whole.length; end += 1)
    if ([...ends].some((start) => pieces.has(whole.slice(start, end)))) ends.add(end);
  return ends.has(whole.length);
}

/** How many pieces have each length. */
function lengthsOf(pieces: string[]): number[] {
  const counts = Array.from({ length: DIGITS + 1 }, () => 0);
  for (const { length } of pieces) counts[length] = (counts[length] ?? 0) + 1;
  return counts;
}

/** In how many ways pieces of these lengths can be put one behind the other to so many digits. */
function waysTo(digits: number, counts: readonly number[]): number {
  if (digits === 0) return 1;
  let ways = 0;
  for (let length = 1; length <= digits; length += 1) {
    const count = counts[length] ?? 0;
    if (count > 0) ways += count * waysTo(digits - length, counts.with(length, count - 1));
  }
  return ways;
}
