import { asRead } from "./as-read.ts";
import { isPhoneKey, isReceiverKey } from "./key-words.ts";

/** The fewest digits of a number that people call: in a parameter for telephone numbers, and elsewhere. */
const MIN_SHORT_CODE = 4;
const MIN_DIGITS = 7;
const MAX_DIGITS = 15;
/** Separators in a list of numbers. */
const LIST = /[,;|\n]/;
/** A date, maybe with time, also as the end of a period. */
const MOMENT =
  /^(?:(?:(?:19|20)\d\d[-./]?(?:0[1-9]|1[0-2])[-./]?(?:0[1-9]|[12]\d|3[01])|\d{1,2}[-./]\d{1,2}[-./](?:19|20)\d\d)(?: \d{1,2}:\d\d(?::\d\d)?)?)$/;
/** Seconds or milliseconds since 1970, from 2017 on. */
const UNIX_TIME = /^1[5-9]\d{8}(?:\d{3})?$/;
/** A date that does not look like a number. */
const DATED = /^[^-./]*\d[-./]|:/;
const YEAR = /^(?:19|20)\d\d$/;
/** A letter next to a digit, as in an id, or an address; both are checked elsewhere. */
const NO_NUMBER = /\p{L}\p{N}|\p{N}\p{L}|@|\/\//u;

/**
 * Returns the telephone numbers in a writing tool's argument, whatever separates their digits: those with a country code
 * that are all of its text, and any others where its name lets it hold some. `ranges`:
 * the call has a beginning as well, so that what it is `to` may be an end.
 */
export function phonesIn(key: string, text: string, ranges: boolean): string[] {
  const given = withDigits(asRead(text)).trim();
  if (isPhoneKey(key)) return numbersOf(given, MIN_SHORT_CODE);
  if (!isReceiverKey(key)) return wholeNumbers(given);
  if (isMoment(given, ranges)) return [];
  const words = given.split(/(\s)/).map((word) => (NO_NUMBER.test(word) ? "x" : word));
  const rest = words.join("");
  if (!/\p{L}/u.test(rest)) return numbersOf(rest, ranges || YEAR.test(rest) ? MIN_DIGITS : MIN_SHORT_CODE);
  return rest.split(/[\p{L},;|\n]/u).filter((part) => digitsOf(part).length >= MIN_DIGITS);
}

/**
 * Only a telephone number is written so (ITU-T E.164), maybe with an extension behind it, whatever the parameter is called. One with more digits
 * than there are is called as well, as those at its end count for nothing; without blanks it rather counts something.
 */
const WHOLE =
  /^(?:(?:[a-z]+:\s*)?\(?\+|(?:tel|callto|sms|smsto|mms|whatsapp|signal|viber|facetime):)([\d\s().\-/\u2010-\u2015]{7,})(?:(?:;?\s?ext[.=]?|[;x#pw])\s?[\w=]+)?$/i;

/** Returns the numbers of a text that holds nothing else. */
function wholeNumbers(text: string): string[] {
  const items = WHOLE.test(text) ? [text] : text.split(LIST).filter((item) => item.trim() !== "");
  const numbers = items.flatMap((item) => {
    const written = WHOLE.exec(item.trim())?.[1]?.trim().replace("(0)", "") ?? "";
    const digits = digitsOf(written);
    const fits = digits.length <= MAX_DIGITS || digits !== written;
    return digits.length >= MIN_DIGITS && fits ? [`+${digits}`] : [];
  });
  return numbers.length === items.length ? numbers : [];
}

function isMoment(text: string, ranges: boolean): boolean {
  return ranges ? MOMENT.test(text) || isUnixTime(text) : MOMENT.test(text) && DATED.test(text);
}

export function isUnixTime(text: string): boolean {
  return UNIX_TIME.test(text);
}

/** Returns the numbers in a text: a list of them, or one number with list separators between its digits. */
function numbersOf(text: string, least: number): string[] {
  const items = text.split(LIST).filter((item) => digitsOf(item) !== "");
  const is_list = items.every((item) => digitsOf(item).length >= least);
  return is_list ? items : digitsOf(text).length >= least ? [text] : [];
}

/** A run of digits, with only characters between them that people write in numbers. */
export interface DigitRun {
  digits: string;
  /** Positions where a group of digits begins or ends. */
  edges: ReadonlySet<number>;
  /** Whether it begins with a country code. */
  abroad: boolean;
}

/** Returns the numbers that a text names; numbers inside a URL or address do not count. */
export function digitRunsIn(text: string): DigitRun[] {
  const words = text.split(/(\s)/).map((word) => (isOther(word) ? "x" : word));
  const lines = withDigits(words.join(""))
    .replaceAll("(0)", " ")
    .replaceAll(/[^\d+]+/g, (between) => (BETWEEN.test(between) ? " " : "\n"))
    .replaceAll("+", "\n+");
  return lines.split("\n").flatMap((line) => (digitsOf(line) === "" ? [] : [runOf(line)]));
}

/** Returns whether a word is a URL or address, or an id of letters and digits. */
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
 * Returns whether a number is among the runs, digit by digit, with or without a country code on either side. A code that
 * only the place has must be `home_code`, the author's own, or that of another number among the runs: the same digits
 * are somebody else's in every country. Null where it is not known.
 */
export function isNamedPhone(place: string, runs: DigitRun[], home_code: string | null): boolean {
  const [wanted, ...more] = digitRunsIn(place.replace(/^[a-z]{1,10}:/i, ""));
  if (wanted === undefined) return false;
  const digits = wanted.digits + more.map((run) => run.digits).join("");
  const home = wanted.abroad ? "" : digits.replace(/^0/, "");
  const isCode = (code: string): boolean =>
    home_code === null || code === home_code || runs.some((run) => run.abroad && run.digits.startsWith(code));
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
          isCode(digits.slice(0, code)) &&
          (stands(digits.slice(code), 0) || stands(`0${digits.slice(code)}`, 0)),
    );
  });
}

/** Possible lengths of country codes (ITU-T E.164 §6.1). */
const CODE_LENGTHS = [1, 2, 3];

function digitsOf(text: string): string {
  return text.replaceAll(/\D+/g, "");
}

/** Returns a text with digits of all scripts as ASCII digits. */
function withDigits(text: string): string {
  return text.replaceAll(/(?!\d)\p{Nd}/gu, (digit) => {
    const code = digit.codePointAt(0) ?? 0;
    let value = 0;
    while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value += 1;
    return String(value);
  });
}
