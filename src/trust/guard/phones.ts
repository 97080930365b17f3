import { asRead } from "./as-read.ts";
import { isPhoneKey, isReceiverKey } from "./key-words.ts";

/** The fewest digits of what people call by a number: where only such a number belongs, and elsewhere. */
const MIN_SHORT_CODE = 4;
const MIN_DIGITS = 7;
/** Signs that divide the numbers of a list. */
const LIST = /[,;|\n]/;
/** A day, with its time or without, or Unix seconds: what a period ends with. */
const MOMENT =
  /^(?:(?:(?:19|20)\d\d[-./]?(?:0[1-9]|1[0-2])[-./]?(?:0[1-9]|[12]\d|3[01])|\d{1,2}[-./]\d{1,2}[-./](?:19|20)\d\d)(?: \d{1,2}:\d\d(?::\d\d)?)?|1[5-9]\d{8}(?:\d{3})?)$/;
/** A letter at a digit, as in an id, and an address: both are looked at elsewhere. */
const NO_NUMBER = /\p{L}\p{N}|\p{N}\p{L}|@|\/\//u;

/** The telephone numbers in what a writing tool gets below a key where one may belong, whatever stands between their digits. */
export function phonesIn(key: string, text: string): string[] {
  const given = withDigits(asRead(text)).trim();
  if (isPhoneKey(key)) return numbersOf(given, MIN_SHORT_CODE);
  if (!isReceiverKey(key) || MOMENT.test(given)) return [];
  const words = given.split(/(\s)/).map((word) => (NO_NUMBER.test(word) ? "x" : word));
  const rest = words.join("");
  if (!/\p{L}/u.test(rest)) return numbersOf(rest, MIN_DIGITS);
  return rest.split(/[\p{L},;|\n]/u).filter((part) => digitsOf(part).length >= MIN_DIGITS);
}

/** A list of numbers, or one number with signs of a list between its digits. */
function numbersOf(text: string, least: number): string[] {
  const items = text.split(LIST).filter((item) => digitsOf(item) !== "");
  const isList = items.every((item) => digitsOf(item).length >= least);
  return isList ? items : digitsOf(text).length >= least ? [text] : [];
}

/** Digits in a row, with nothing between them but what people write into a number. */
export interface DigitRun {
  digits: string;
  /** Where a group of them begins or ends. */
  edges: ReadonlySet<number>;
  /** Whether it begins with the code of a country. */
  abroad: boolean;
}

/** The numbers that a text names; those within an address are not named by it. */
export function digitRunsIn(text: string): DigitRun[] {
  const words = text.split(/(\s)/).map((word) => (isOther(word) ? "x" : word));
  const lines = withDigits(words.join(""))
    .replaceAll("(0)", " ")
    .replaceAll(/[^\d+]+/g, (between) => (BETWEEN.test(between) ? " " : "\n"))
    .replaceAll("+", "\n+");
  return lines.split("\n").flatMap((line) => (digitsOf(line) === "" ? [] : [runOf(line)]));
}

/** Whether a word is an address, or an id of letters and digits. */
function isOther(word: string): boolean {
  return (ADDRESS_SIGN.test(word) && /\p{L}/u.test(word)) || /[a-z]\d|\d[a-z]/i.test(word);
}

const ADDRESS_SIGN = /[./\\@?&=#%\u3002\uFF0E\uFF61]/;
const BETWEEN = /^[ \t\u00A0\u2007\u202F().\-/\u2010-\u2015]{1,3}$/;

function runOf(line: string): DigitRun {
  const [, code = ""] = /^ *(\+|00)/.exec(line) ?? [];
  const groups = line.trim().slice(code.length).trim().split(" ");
  const edges = new Set([0]);
  let length = 0;
  for (const group of groups) edges.add((length += group.length));
  return { digits: groups.join(""), edges, abroad: code !== "" };
}

/**
 * Whether a number is among those, digit by digit. With the code of a country it is the one that stands there without,
 * and the other way round.
 */
export function isNamedPhone(place: string, runs: DigitRun[]): boolean {
  const [wanted, ...more] = digitRunsIn(place.replace(/^[a-z]{1,10}:/i, ""));
  if (wanted === undefined) return false;
  const digits = wanted.digits + more.map((run) => run.digits).join("");
  const home = wanted.abroad ? "" : digits.replace(/^0/, "");
  return runs.some((run) => {
    const stands = (part: string, at: number): boolean =>
      run.digits.startsWith(part, at) && run.edges.has(at + part.length);
    const starts = wanted.abroad && run.abroad ? [0] : [...run.edges];
    if (starts.some((at) => stands(digits, at))) return true;
    return CODE_LENGTHS.some((code) =>
      run.abroad
        ? home.length >= MIN_DIGITS && stands(home, code)
        : !digits.startsWith("0") &&
          digits.length - code >= MIN_DIGITS &&
          (stands(digits.slice(code), 0) || stands(`0${digits.slice(code)}`, 0)),
    );
  });
}

/** The codes of countries (ITU-T E.164 §6.1). */
const CODE_LENGTHS = [1, 2, 3];

function digitsOf(text: string): string {
  return text.replaceAll(/\D+/g, "");
}

/** A text with its digits as those of ASCII, in whatever script they are. */
function withDigits(text: string): string {
  return text.replaceAll(/(?!\d)\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0;
    let value = 0;
    while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value += 1;
    return String(value);
  });
}
