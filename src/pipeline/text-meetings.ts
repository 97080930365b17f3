import { bareLetters } from "../lib/bare-letters.ts";
import { fieldsIn, rowsIn } from "../trust/guard/packed/together.ts";

/** Fewer letters of a text that stands alone in a mail are everybody's. */
export const MIN_ALONE_LETTERS = 16;
/** So many letters in a row are nobody's by chance, whatever stands around them. */
export const MIN_RUN_LETTERS = 24;
/** The letters in a row begin so far before the meeting: each line of `SHORT_LINE_LETTERS` over a meeting has some of them whole. */
const BEGIN_BEFORE = [1, 4, 8, 12, 16, 20, 23];
const SHORT_LINE_LETTERS = 28;
/** The same where a template puts fields in a row, which parts no words: some letters of each suffice. */
const BEGIN_IN_FIELD = [6, 12, 18];
/** In an object of more fields those that are further from each other are not looked at together. */
const MAX_FIELDS_APART = 7;

/**
 * Returns, for each place where two texts of a call meet that a program may put one behind the other, the letters that are
 * known again in a mail: some in a row around it, and all of a few short texts. A program may have parted words there, and
 * put anything before and behind.
 */
export function meetingsIn(args: unknown): string[][] {
  const rows = rowsIn(args).map(lettersOf);
  return [...rows.flatMap(meetingsOf), ...fieldsIn(args).map(lettersOf).flatMap(pairsOf)];
}

function lettersOf(texts: string[]): string[] {
  return texts.map(bareLetters).filter((text) => text !== "");
}

/** Each two fields, in both sequences. */
function pairsOf(fields: string[]): string[][] {
  return fields.flatMap((field, nth) => {
    const others = fields.slice(Math.max(0, nth - MAX_FIELDS_APART), nth + MAX_FIELDS_APART + 1);
    const before = field.slice(-MIN_RUN_LETTERS);
    return others.flatMap((other) => {
      if (other === field) return [];
      const row = before + other.slice(0, MIN_RUN_LETTERS);
      const spans = BEGIN_IN_FIELD.filter((begin) => begin <= before.length).map((begin) =>
        row.slice(before.length - begin, before.length - begin + MIN_RUN_LETTERS),
      );
      const whole = spans.filter(({ length }) => length === MIN_RUN_LETTERS);
      return whole.length > 0 ? [whole] : [];
    });
  });
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
