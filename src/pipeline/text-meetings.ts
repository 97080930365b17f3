import { bareLetters } from "../lib/bare-letters.ts";
import { rowsIn } from "../trust/guard/packed/together.ts";

/** Fewer letters of a text that stands alone in a mail are everybody's. */
export const MIN_ALONE_LETTERS = 16;
/** So many letters in a row are nobody's by chance, whatever stands around them. */
export const MIN_RUN_LETTERS = 24;
/** The letters in a row begin so far before the meeting: each line of `SHORT_LINE_LETTERS` over a meeting has some of them whole. */
const BEGIN_BEFORE = [1, 4, 8, 12, 16, 20, 23];
const SHORT_LINE_LETTERS = 28;

/**
 * Returns, for each place where two texts of a call meet that a program may put one behind the other, the letters that are
 * known again in a mail: some in a row around it, and all of a few short texts. A program may have parted words there, and
 * put anything before and behind.
 */
export function meetingsIn(args: unknown): string[][] {
  return rowsIn(args).flatMap((row) => meetingsOf(row.map(bareLetters).filter((text) => text !== "")));
}

function meetingsOf(row: string[]): string[][] {
  const whole = row.join("");
  let at = 0;
  return row.slice(1).map((_text, nth) => {
    const begins = at;
    at += row[nth]?.length ?? 0;
    const around = BEGIN_BEFORE.filter((before) => before <= at).map((before) =>
      whole.slice(at - before, at - before + MIN_RUN_LETTERS),
    );
    return [...around, ...shortLines(row, { nth, begins, whole })].filter(
      ({ length }) => length >= MIN_ALONE_LETTERS,
    );
  });
}

/** The texts from one on, as far as they make a short line. */
function shortLines(
  row: string[],
  { nth, begins, whole }: { nth: number; begins: number; whole: string },
): string[] {
  const lines: string[] = [];
  let end = begins + (row[nth]?.length ?? 0);
  for (let next = nth + 1; next < row.length && end - begins < SHORT_LINE_LETTERS; next += 1) {
    end += row[next]?.length ?? 0;
    lines.push(whole.slice(begins, end));
  }
  return lines;
}
