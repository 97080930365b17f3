import { folded, widthOf } from "./fold.ts";
import { hostToShow, isTask, type LinkGuard, noteOf, type Token } from "./markdown.ts";
import { type Column, type Table, tableAt } from "./tables.ts";

/** Leaves room for the marks of a quote in a line of 78 characters (RFC 5322 section 2.1.1). */
const COLUMNS = 74;
const LEAST_COLUMNS = 30;
/** Deeper lists and quotes begin where those around them do: their marks would be longer than the text. */
const MAX_INDENT = 24;
/** The longest name of a column that is repeated in each row. */
const MAX_NAME_CHARS = 40;
/** Narrower columns do not hold a sentence. */
const LEAST_COLUMN = 16;
/** Lines of a table are together at most so many times as long as its words. */
const MAX_BLANKS = 8;
const BETWEEN = "  ";

interface Page {
  tokens: readonly Token[];
  at: number;
  lines: string[];
  guard: LinkGuard | undefined;
}

/** What stands in front of the next line, and of those below it. */
interface Margin {
  first: string;
  rest: string;
}

/** The blocks as text to be read as it is: no marks but those of lists, quotes and large headings. */
export function writeText(tokens: readonly Token[], guard?: LinkGuard): string {
  const page: Page = { tokens, at: 0, lines: [], guard };
  writeBlocks(page, { first: "", rest: "" });
  return page.lines.join("\n");
}

/** All blocks up to the end of the one that they are in. */
function writeBlocks(page: Page, margin: Margin, { tight = false } = {}): void {
  let above: Token | undefined;
  for (let token = page.tokens[page.at]; token && token.nesting !== -1; token = page.tokens[page.at]) {
    const together = tight || (above?.type === "footnote_open" && token.type === "footnote_open");
    if (above && !together) put(page, margin, [""]);
    writeBlock(page, token, margin);
    above = token;
  }
}

/** Leaves the page behind the block. */
function writeBlock(page: Page, token: Token, margin: Margin): void {
  const start = page.at;
  page.at += 1;
  if (token.type === "paragraph_open" || token.type === "heading_open" || token.type === "footnote_open") {
    const inline = page.tokens[page.at];
    if (inline) writeWords(page, { token, inline }, margin);
    page.at = start + 3;
  } else if (token.type === "table_open") {
    const table = tableAt(page.tokens, start);
    writeTable(page, table, margin);
    page.at = table.end;
  } else if (token.type === "bullet_list_open" || token.type === "ordered_list_open") {
    writeList(page, token, margin);
    page.at += 1;
  } else if (token.type === "blockquote_open") {
    writeBlocks(page, within(margin, "> ", "> "));
    page.at += 1;
  } else if (token.type === "hr") put(page, margin, ["* * *"]);
  else if (token.type === "fence" || token.type === "code_block")
    put(page, margin, token.content.trimEnd().split("\n").map((line) => `    ${line}`));
}

function put(page: Page, margin: Margin, lines: string[]): void {
  for (const line of lines) {
    page.lines.push((margin.first + line).trimEnd());
    margin.first = margin.rest;
  }
}

/** What is inside a block whose first line has a mark in front. */
function within({ first, rest }: Margin, mark: string, below: string): Margin {
  return { first: first + mark, rest: rest.length < MAX_INDENT ? rest + below : rest };
}

function columnsIn({ rest }: Margin): number {
  return Math.max(LEAST_COLUMNS, COLUMNS - rest.length);
}

/** A paragraph, a heading or a footnote. */
function writeWords(page: Page, { token, inline }: { token: Token; inline: Token }, margin: Margin): void {
  const words = wordsOf(page, inline);
  if (token.type === "footnote_open") {
    const mark = `[${token.info}] `;
    const inside = within(margin, mark, " ".repeat(mark.length));
    put(page, inside, folded(words, columnsIn(inside)));
    margin.first = margin.rest;
    return;
  }
  const lines = folded(words, columnsIn(margin));
  put(page, margin, lines);
  const line = { h1: "=", h2: "-" }[token.tag];
  if (line === undefined || !/\p{L}/u.test(words)) return;
  const width = lines.reduce((most, one) => Math.max(most, widthOf(one)), 3);
  put(page, margin, [line.repeat(Math.min(width, columnsIn(margin)))]);
}

function writeList(page: Page, list: Token, margin: Margin): void {
  let number = Number(list.attrGet("start") ?? 1);
  for (let item = page.tokens[page.at]; item?.type === "list_item_open"; item = page.tokens[page.at]) {
    page.at += 1;
    const tight = page.tokens[page.at]?.hidden === true;
    const marks = list.type === "ordered_list_open" ? `${number}. ` : "- ";
    const mark = isTask(item) ? "" : marks;
    const inside = within(margin, mark, " ".repeat(mark.length || 2));
    const before = page.lines.length;
    writeBlocks(page, inside, { tight });
    if (page.lines.length === before) put(page, inside, [""]);
    margin.first = margin.rest;
    page.at += 1;
    number += 1;
    if (!tight && page.tokens[page.at]?.type === "list_item_open") put(page, margin, [""]);
  }
}

function writeTable(page: Page, { columns, head, rows }: Table, margin: Margin): void {
  const cells = [head, ...rows].map((row) => row.map((cell) => wordsOf(page, cell)));
  const widths = widthsFor(cells, { count: columns.length, room: columnsIn(margin) });
  put(page, margin, widths === undefined ? named(cells, columnsIn(margin)) : aligned(cells, columns, widths));
}

/** How wide each column is; undefined where they do not fit beside each other, or would be blanks for the most part. */
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
  const isFull = cells.length * room <= MAX_BLANKS * chars + 20 * room;
  const fitted = widths.map((width) => Math.min(width, most));
  return fits && isFull && words.every((width, at) => width <= (fitted[at] ?? 0)) ? fitted : undefined;
}

/** The most that each may take for all to fit into `room`. */
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

/** As many as its longest cell needs. */
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

/** Too wide for columns: each row as lines of a name and a value. */
function named([names = [], ...body]: string[][], columns: number): string[] {
  const short = names.map((name) =>
    name.length <= MAX_NAME_CHARS ? name : `${name.slice(0, MAX_NAME_CHARS - 1).replace(/[\uD800-\uDBFF]$/, "")}…`,
  );
  const isCut = short.some((name, at) => name !== names[at]);
  const blocks = body.map((row) =>
    row.flatMap((cell, at) => {
      if (cell === "") return [];
      const name = short[at] ?? "";
      const [first = "", ...more] = folded(name === "" ? cell : `${name}: ${cell}`, columns - 2);
      return [first, ...more.map((line) => `  ${line}`)];
    }),
  );
  const all = isCut || body.length === 0 ? [folded(names.join(" | "), columns), ...blocks] : blocks;
  return all.flatMap((block, at) => (at === 0 ? block : ["", ...block]));
}

/** The words of a line; behind those of a link its address. */
function wordsOf({ guard }: Page, { children }: Token): string {
  const parts: string[] = [];
  let link: { target: string; from: number } | undefined;
  for (const token of children ?? []) {
    if (token.type === "link_open") link = { target: String(token.attrGet("href") ?? ""), from: parts.length };
    else if (token.type === "link_close") {
      const shown = link ? parts.slice(link.from).join("") : "";
      if (link && hostToShow(link.target, shown) !== undefined) parts.push(` <${addressOf(link.target)}>`);
      link = undefined;
    } else parts.push(wordOf(token));
  }
  const words = parts.join("");
  // Put together, what stood apart may be an address.
  return guard ? guard.clean(words) : words;
}

function addressOf(target: string): string {
  return target.replace(/^mailto:/i, "");
}

function wordOf(token: Token): string {
  if (token.type === "softbreak" || token.type === "hardbreak") return "\n";
  if (token.type === "image") {
    const { picture } = noteOf(token);
    return picture ? `[image: ${token.content || picture.filename}]` : `[${token.content}]`;
  }
  if (token.type === "s_open" || token.type === "s_close") return "~";
  return token.content;
}
