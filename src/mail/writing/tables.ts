import type { Token } from "./markdown.ts";

type Side = "left" | "center" | "right";

export interface Column {
  /** As the Markdown says, or right for numbers. */
  side: Side | undefined;
  numbers: boolean;
}

/** A table for both writers (HTML and text); each cell is the inline token of its words. */
export interface Table {
  columns: Column[];
  head: Token[];
  rows: Token[][];
  /** Index of the token behind the table. */
  end: number;
}

/** Returns the table that begins at a `table_open` token. */
export function tableAt(tokens: readonly Token[], start: number): Table {
  const rows: Token[][] = [];
  const sides: (Side | undefined)[] = [];
  let end = start + 1;
  for (; tokens[end] !== undefined && tokens[end]?.type !== "table_close"; end += 1) {
    const token = tokens[end];
    if (token?.type === "tr_open") rows.push([]);
    if (token?.type === "th_open") sides.push(sideOf(token));
    if (token?.type === "inline") rows.at(-1)?.push(token);
  }
  const [head = [], ...body] = rows;
  const columns = head.map((_, at) => {
    const numbers = areNumbers(body.map((row) => row[at]));
    return { side: sides[at] ?? (numbers ? "right" : undefined), numbers } satisfies Column;
  });
  return { columns, head, rows: body, end: end + 1 };
}

function sideOf(token: Token): Side | undefined {
  return /left|center|right/.exec(String(token.attrGet("style") ?? ""))?.[0] as Side | undefined;
}

const MAX_NUMBER_CHARS = 24;
const NO_NUMBER = /^(?:[-–—.?]|n\/a|)$/i;
/** A number: digits and their separators, with sign, currency and a unit of at most three letters. */
const NUMBER =
  /^[-+−±~≈<>≤≥(]?\p{Sc}?(?:[A-Z]{3})?[-+−]?\p{Sc}?\d[\d.,'’]*(?:%|‰|\p{Sc}|[\p{L}µ°]{1,3}[²³]?)?\)?$/u;
const DATE = /^(?:\d{1,2}\.\d{1,2}\.(?:\d{2}){1,2}|\d{4}\.\d{2}\.\d{2})$/;

function areNumbers(cells: (Token | undefined)[]): boolean {
  let found = 0;
  for (const cell of cells) {
    const words = (cell?.children ?? []).map(({ content }) => content).join("");
    if (words.length > MAX_NUMBER_CHARS) return false;
    const bare = words.replaceAll(/\s/g, "");
    if (NO_NUMBER.test(bare)) continue;
    if (!NUMBER.test(bare) || DATE.test(bare)) return false;
    found += 1;
  }
  return found > 0;
}
