import { folded, widthOf } from "./fold.ts";
import { hostToShow, isTask, type LinkGuard, noteOf, type Token } from "./markdown.ts";
import { type Table, tableAt } from "./tables.ts";
import { tableLines } from "./text-table.ts";

/** Line width, which leaves room for quote marks in a line of 78 characters (RFC 5322 §2.1.1). */
const COLUMNS = 74;
const LEAST_COLUMNS = 30;
/**
 * Deepest indentation: deeper lists and quotes are not indented further, since their marks would be longer than the
 * text.
 */
const MAX_INDENT = 24;

interface Page {
  tokens: readonly Token[];
  at: number;
  lines: string[];
  guard: LinkGuard | undefined;
}

/** The characters in front of the next line, and of the lines below it. */
interface Margin {
  first: string;
  rest: string;
}

/** Returns the blocks as plain text: no marks except those of lists, quotes and large headings. */
export function writeText(tokens: readonly Token[], guard?: LinkGuard): string {
  const [only, ...others] = tokens;
  // Nothing else is there from which code would have to be told, and a program may read it.
  if (only?.type === "fence" && others.length === 0) return only.content.trimEnd();
  const page: Page = { tokens, at: 0, lines: [], guard };
  writeBlocks(page, { first: "", rest: "" });
  return page.lines.join("\n");
}

/** Writes all blocks up to the end of the enclosing one. */
function writeBlocks(page: Page, margin: Margin, { tight = false } = {}): void {
  let above: Token | undefined;
  for (let token = page.tokens[page.at]; token && token.nesting !== -1; token = page.tokens[page.at]) {
    const together = tight || (above?.type === "footnote_open" && token.type === "footnote_open");
    if (above && !together) put(page, margin, [""]);
    writeBlock(page, token, margin);
    above = token;
  }
}

/** Writes a block, and moves the page's position behind it. */
function writeBlock(page: Page, token: Token, margin: Margin): void {
  const start = page.at;
  page.at += 1;
  const inline = page.tokens[page.at];
  if (inline?.type === "inline") {
    writeWords(page, { token, inline }, margin);
    page.at += 2;
  } else if (token.type === "table_open") {
    const table = tableAt(page.tokens, start);
    writeTable(page, table, margin);
    page.at = table.end;
  } else if (token.nesting === 1) {
    if (token.type === "blockquote_open") writeBlocks(page, within(margin, "> ", "> "));
    else writeList(page, token, margin);
    page.at += 1;
  } else put(page, margin, token.type === "hr" ? ["* * *"] : codeLines(token));
}

function codeLines({ content }: Token): string[] {
  return content
    .trimEnd()
    .split("\n")
    .map((line) => `    ${line}`);
}

function put(page: Page, margin: Margin, lines: string[]): void {
  for (const line of lines) {
    page.lines.push((margin.first + line).trimEnd());
    margin.first = margin.rest;
  }
}

/** Returns the margin inside a block whose first line has a mark in front. */
function within({ first, rest }: Margin, mark: string, below: string): Margin {
  return { first: first + mark, rest: rest.length < MAX_INDENT ? rest + below : rest };
}

function columnsIn({ rest }: Margin): number {
  return Math.max(LEAST_COLUMNS, COLUMNS - rest.length);
}

/** Writes a paragraph, a heading or a footnote. */
function writeWords(page: Page, { token, inline }: { token: Token; inline: Token }, margin: Margin): void {
  const words = plainTextOf(page, inline);
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
  const cells = [head, ...rows].map((row) => row.map((cell) => plainTextOf(page, cell)));
  put(page, margin, tableLines(cells, columns, columnsIn(margin)));
}

/** Returns the text of a line, with its URL behind each link. */
function plainTextOf({ guard }: Page, { children }: Token): string {
  const tokens = children ?? [];
  const parts: string[] = [];
  let link: { target: string; from: number } | undefined;
  for (const token of tokens) {
    if (token.type === "link_open") link = { target: addressOf(token), from: parts.length };
    parts.push(
      token.type === "link_close" && link ? behind(link, parts) : wordOf(token, tokens.length === 1),
    );
  }
  const words = parts.join("");
  // Joined, separate pieces may form a URL.
  return guard ? guard.clean(words) : words;
}

/** Returns the URL of a link whose text is not already that. */
function behind({ target, from }: { target: string; from: number }, parts: string[]): string {
  const is_said = hostToShow(target, parts.slice(from).join("")) === undefined;
  return is_said ? "" : ` <${target.replace(/^mailto:/i, "")}>`;
}

function addressOf(link: Token): string {
  return String(link.attrGet("href") ?? "");
}

/** Returns the text of a token; `alone` says that nothing else is in its line. */
function wordOf(token: Token, alone: boolean): string {
  const { type, content } = token;
  if (type === "softbreak" || type === "hardbreak") return "\n";
  if (type === "s_open" || type === "s_close") return "~";
  if (type === "code_inline" && !alone && content.includes(" ")) return `"${content}"`;
  if (type !== "image") return content;
  const { picture } = noteOf(token);
  return picture ? `[image: ${content || picture.filename}]` : `[${content}]`;
}
