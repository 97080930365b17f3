import { asRead } from "./as-read.ts";
import { type Given, TOO_MUCH, textsIn } from "./packed/texts.ts";

const TAG = /<[^<>]{0,2000}>/g;
/** A longer value, or first line, is no piece that a template has put in place. */
const MAX_PIECE_CHARS = 60;
/** A single digit stands everywhere: it is a piece only if it is all of a value. */
const RUN = /\d{2,}|^\d$/g;

/**
 * Returns which of the numbers a tool's arguments have, whatever stands between its digits; or whose pieces they have, in any
 * order: a template puts values together in its own, a page may turn them round. By such a number a mail of the owner's consents
 * to a call that waits.
 */
export function numberIn(
  args: Record<string, unknown>,
  numbers: string[],
  formsOf: (text: string) => string[],
): string | undefined {
  if (numbers.length === 0) return undefined;
  const { texts, pieces } = digitsOf(args, formsOf);
  return numbers.find((number) => texts.some((text) => text.includes(number)) || isMadeOf(number, pieces));
}

function digitsOf(
  args: Record<string, unknown>,
  formsOf: (text: string) => string[],
): { texts: string[]; pieces: Set<string> } {
  let joined = "";
  const texts: string[] = [];
  const pieces = new Set<string>();
  for (const given of textsIn(args)) {
    if (given === TOO_MUCH) continue;
    const value = String(given.value);
    const digits = digitsIn(asRead(value));
    joined += digits;
    texts.push(digits.split("").toReversed().join(""));
    for (const form of formsOf(value)) texts.push(digitsIn(asRead(form)));
    for (const piece of piecesOf(given)) pieces.add(piece);
  }
  return { texts: [joined, ...texts], pieces };
}

/** The numbers in a short value, and in the first line of a long one, of which an answer is made. */
function piecesOf({ value }: Given): string[] {
  const text = String(value).slice(0, 4 * MAX_PIECE_CHARS);
  const words = [asRead(text).replaceAll(TAG, " "), ...(BASE64.test(text) ? [decoded(text)] : [])];
  return words.flatMap((one) => {
    const [first = ""] = one.trim().split(/[\r\n]/, 1);
    return first.length > MAX_PIECE_CHARS ? [] : (first.trim().match(RUN) ?? []);
  });
}

/** A value in base64 that is too short to be told from a word. */
const BASE64 = /^[A-Za-z0-9+/_-]{2,12}={0,2}$/;

function decoded(text: string): string {
  const words = Buffer.from(text, "base64").toString();
  return /^[\x20-\x7e]*$/.test(words) ? words : "";
}

/** Whether a number is some of the pieces, one behind the other. */
function isMadeOf(number: string, pieces: ReadonlySet<string>): boolean {
  const ends = new Set([0]);
  for (let end = 1; end <= number.length; end += 1)
    if ([...ends].some((start) => pieces.has(number.slice(start, end)))) ends.add(end);
  return ends.has(number.length);
}

function digitsIn(text: string): string {
  return text.replaceAll(/\D/g, "");
}
