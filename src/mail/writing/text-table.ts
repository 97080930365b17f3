import { folded, widthOf } from "./fold.ts";
import type { Column } from "./tables.ts";

/** The longest name of a column that is repeated in each row. */
const MAX_NAME_CHARS = 40;
/** Narrower columns do not hold a sentence. */
const LEAST_COLUMN = 16;
/** A table's lines may have at most this many times the characters of its text. */
const MAX_BLANKS = 8;
const BETWEEN = "  ";

/** Returns a table, whose first row has the column names, as lines of at most `room` columns if its words allow it. */
export function tableLines(cells: string[][], columns: Column[], room: number): string[] {
  const widths = widthsFor(cells, { count: columns.length, room });
  return widths === undefined ? named(cells, room) : aligned(cells, columns, widths);
}

/** Returns the width of each column; undefined where they do not fit side by side, or would be mostly blank. */
function widthsFor(
  cells: string[][],
  { count, room }: { count: number; room: number },
): number[] | undefined {
  const widths = Array.from({ length: count }, () => 1);
  const words = Array.from({ length: count }, () => 1);
  let chars = 0;
  for (const row of cells)
    for (const [at, cell] of row.entries()) {
      widths[at] = Math.max(widths[at] ?? 1, widthOf(cell));
      for (const word of cell.split(" ")) words[at] = Math.max(words[at] ?? 1, widthOf(word));
      chars += cell.length;
    }
  const left = room - (count - 1) * BETWEEN.length;
  const most = sharedOut(widths, left);
  const fits = most >= LEAST_COLUMN || widths.every((width) => width <= most);
  const is_full = cells.length * room <= MAX_BLANKS * chars + 20 * room;
  const fitted = widths.map((width) => Math.min(width, most));
  return fits && is_full && words.every((width, at) => width <= (fitted[at] ?? 0)) ? fitted : undefined;
}

/** Returns the largest width that each column may have for all to fit into `room`. */
function sharedOut(widths: number[], room: number): number {
  let left = room;
  const sorted = widths.toSorted((one, other) => one - other);
  for (const [at, width] of sorted.entries()) {
    const share = Math.floor(left / (sorted.length - at));
    if (width > share) return share;
    left -= width;
  }
  return sorted.at(-1) ?? 0;
}

function aligned(cells: string[][], columns: Column[], widths: number[]): string[] {
  const [head = [], ...body] = cells.map((row) => linesOfRow(row, columns, widths));
  const line = widths.map((width) => "-".repeat(width)).join(BETWEEN);
  return [...head, line, ...body.flat()];
}

/** Returns the lines of a row, as many as its longest cell needs. */
function linesOfRow(row: string[], columns: Column[], widths: number[]): string[] {
  const folds = widths.map((width, at) => folded(row[at] ?? "", width));
  const height = folds.reduce((most, lines) => Math.max(most, lines.length), 1);
  return Array.from({ length: height }, (_, line) =>
    folds
      .map((lines, at) => padded(lines[line] ?? "", widths[at] ?? 0, columns[at]?.side ?? "left"))
      .join(BETWEEN),
  );
}

function padded(cell: string, width: number, side: "left" | "center" | "right"): string {
  const blanks = Math.max(0, width - widthOf(cell));
  const before = { left: 0, center: blanks >> 1, right: blanks }[side];
  return " ".repeat(before) + cell + " ".repeat(blanks - before);
}

/** Returns a table that is too wide as lines of name and value, row by row. */
function named([names = [], ...body]: string[][], columns: number): string[] {
  const short = names.map((name) =>
    name.length <= MAX_NAME_CHARS
      ? name
      : `${name.slice(0, MAX_NAME_CHARS - 1).replace(/[\uD800-\uDBFF]$/, "")}…`,
  );
  const is_cut = short.some((name, at) => name !== names[at]);
  const lines = is_cut || body.length === 0 ? folded(names.join(" | "), columns) : [];
  for (const row of body) {
    if (lines.length > 0) lines.push("");
    for (const [at, cell] of row.entries()) {
      const name = short[at] ?? "";
      const [first = "", ...more] = folded(name === "" ? cell : `${name}: ${cell}`, columns - 2);
      if (cell !== "") lines.push(first, ...more.map((line) => `  ${line}`));
    }
  }
  return lines;
}
