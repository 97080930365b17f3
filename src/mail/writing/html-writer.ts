import type sanitizeHtml from "sanitize-html";

import { HtmlRoom } from "./html-room.ts";
import { LOOK, QUIET_CLASS } from "./look.ts";
import {
  escapeHtml,
  hostToShow,
  isTask,
  type LinkGuard,
  noteOf,
  parseMarkdown,
  type Token,
} from "./markdown.ts";
import { MAX_PICTURE_PX } from "./pictures.ts";
import { sanitizer } from "./sanitizer.ts";
import { type Column, type Table, tableAt } from "./tables.ts";

/** Length up to which a cell is not wrapped, and a word too long for a telephone's screen. */
const SHORT_CELL_CHARS = 24;
const LONG_WORD = /\S{25}/;
const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC]/;

const NAMES =
  "h1 h2 h3 h4 h5 h6 p br hr blockquote pre code ul ol li em strong s sup a img table thead tbody tr th td div".split(
    " ",
  );

/** Attributes that every element may have, some only with the values that the writer uses. */
const ATTRIBUTES: sanitizeHtml.AllowedAttribute[] = [
  { name: "style", values: Object.values(LOOK) },
  { name: "dir", values: ["auto"] },
  { name: "class", values: [QUIET_CLASS] },
  { name: "align", values: ["left", "center", "right"] },
  { name: "valign", values: ["top"] },
];
const MORE_ATTRIBUTES: Record<string, string[]> = {
  a: ["href"],
  ol: ["start"],
  img: ["src", "alt", "width"],
  table: ["border", "cellpadding", "cellspacing"],
  th: ["nowrap", "scope"],
  td: ["nowrap"],
};

/** A second protection in case the writer is wrong: no element, style or URL scheme but those it uses. */
const ALLOWED: sanitizeHtml.IOptions = {
  allowedTags: NAMES,
  allowedAttributes: Object.fromEntries(
    NAMES.map((name) => [name, [...ATTRIBUTES, ...(MORE_ATTRIBUTES[name] ?? [])]]),
  ),
  // Every style is exactly one of ours.
  parseStyleAttributes: false,
  allowedSchemes: ["http", "https", "mailto"],
  allowedSchemesByTag: { img: ["cid"] },
  allowProtocolRelative: false,
};

interface Wanted {
  /** In bytes of UTF-8. */
  room: number;
  /** Whether this server wrote it: a paragraph of only code then quotes a sentence, and is shown as one. */
  own: boolean;
}

interface Page {
  html: HtmlRoom;
  own: boolean;
  /** Whether the text direction is set for each block. */
  auto: boolean;
  /** Bytes up to which a block of code is not cut. */
  whole_code: number;
}

/**
 * Returns the blocks as HTML without scripts, foreign styles or remote pictures; `cut` says that not all fitted into
 * `room`.
 */
export function writeHtml(tokens: readonly Token[], { room, own }: Wanted): { html: string; cut: boolean } {
  const html = new HtmlRoom(room);
  const auto = tokens.some(({ content }) => RIGHT_TO_LEFT.test(content));
  const page = { html, own, auto, whole_code: room / 4 };
  for (let at = 0; at < tokens.length && !html.full;) at = writeBlock(page, tokens, at);
  return { html: sanitizer()(html.text(), ALLOWED), cut: html.full };
}

/** Writes the block that begins with a token. Returns the index behind it. */
function writeBlock(page: Page, tokens: readonly Token[], at: number): number {
  const token = tokens[at];
  if (token === undefined) return tokens.length;
  if (token.type === "table_open") {
    const table = tableAt(tokens, at);
    writeTable(page, table);
    page.html.mayEnd();
    return table.end;
  }
  if (token.type === "inline") writeInline(page, token);
  else if (token.type === "fence" || token.type === "code_block") writeCode(page, token);
  else if (token.type === "hr") page.html.put(element("hr", LOOK.hr));
  else if (token.nesting === 1) openBlock(page, token);
  else if (token.nesting === -1 && !token.hidden) closeBlock(page, token);
  return at + 1;
}

function closeBlock(page: Page, { type, level }: Token): void {
  page.html.close();
  page.html.put("\n");
  if (level === 0 || type === "list_item_close") page.html.mayEnd();
}

function openBlock(page: Page, token: Token): void {
  if (token.hidden) return;
  const { html } = page;
  // Only at the outermost element: one with its own direction inside would not count for the direction of the outer.
  const dir = page.auto && token.level === 0 ? ' dir="auto"' : "";
  const style = `${dir} style="${LOOK[lookOf(page, token)]}"`;
  if (token.type === "footnote_open") {
    html.open(`p class="${QUIET_CLASS}"${style}`, "</p>");
    html.put(`[${token.info}] `);
    return;
  }
  const start = token.attrGet("start");
  html.open(token.tag + (start === null ? "" : ` start="${start}"`) + style, `</${token.tag}>`);
}

function lookOf({ html, auto }: Page, token: Token): keyof typeof LOOK {
  const { tag, type } = token;
  if (type === "footnote_open") return "note";
  if (tag === "p") return html.isWithin() ? "p_within" : "p";
  if (type === "heading_open") return html.isEmpty ? (tag as "h1") : `${tag as "h1"}_below`;
  if (tag === "li") return isTask(token) ? "task" : "li";
  const all = tag === "blockquote" ? "blockquote" : html.isWithin("</li>") ? "list_within" : "list";
  return auto ? `${all}_auto` : all;
}

/** Writes code line by line, so that it can be cut behind each. */
function writeCode(page: Page, { content }: Token): void {
  page.html.open(`pre style="${LOOK.pre}"`, "</pre>\n");
  for (const line of content.split(/(?<=\n)/)) {
    page.html.words(line);
    if (content.length > page.whole_code) page.html.mayEnd();
  }
  page.html.close();
  if (!page.html.isWithin()) page.html.mayEnd();
}

function writeTable(page: Page, { columns, head, rows }: Table): void {
  const dir = page.auto && !page.html.isWithin() ? ' dir="auto"' : "";
  page.html.open(`div${dir} style="${LOOK.wide}"`, "</div>\n");
  page.html.open(`table border="0" cellpadding="0" cellspacing="0" style="${LOOK.table}"`, "</table>");
  page.html.open("thead", "</thead>\n");
  writeRow(page, columns, head, true);
  page.html.close();
  if (rows.length > 0) {
    page.html.open("tbody", "</tbody>");
    for (const row of rows) {
      writeRow(page, columns, row, false);
      page.html.mayEnd();
      if (page.html.full) break;
    }
    page.html.close();
  }
  page.html.close();
  page.html.close();
}

function writeRow(page: Page, columns: Column[], cells: Token[], is_head: boolean): void {
  const { html, auto } = page;
  html.open('tr valign="top"', "</tr>\n");
  for (const [at, cell] of cells.entries()) {
    const column = columns[at] ?? { side: undefined, numbers: false };
    if (is_head) html.open(headTag(column, auto), "</th>");
    else html.open(`td${alignOf(column)} style="${LOOK[cellLook(cell, column.numbers)]}"`, "</td>");
    writeInline(page, cell);
    html.close();
    if (html.full) return;
  }
  html.close();
}

/** Returns the tag of a column's name, aligned like the column; a browser would centre it by default. */
function headTag(column: Column, auto: boolean): string {
  const look = auto && column.side === undefined ? "th_auto" : "th";
  const align = auto ? alignOf(column) : alignOf({ ...column, side: column.side ?? "left" });
  return `th scope="col"${align} style="${LOOK[look]}"`;
}

function alignOf({ side, numbers }: Column): string {
  return (side === undefined ? "" : ` align="${side}"`) + (numbers ? " nowrap" : "");
}

function cellLook(cell: Token, numbers: boolean): "td" | "td_words" | "td_long" {
  const { content } = cell;
  if (numbers || content.length <= SHORT_CELL_CHARS) return "td";
  return LONG_WORD.test(content) ? "td_long" : "td_words";
}

function writeInline(page: Page, { children }: Token): void {
  const tokens = children ?? [];
  const [only] = tokens;
  if (page.own && tokens.length === 1 && only?.type === "code_inline") return page.html.words(only.content);
  let link = { target: "", shown: "" };
  for (const token of tokens) {
    if (page.html.full) return;
    if (token.type === "link_open") {
      link = { target: String(token.attrGet("href") ?? ""), shown: "" };
      page.html.open(`a href="${escapeHtml(link.target)}" style="${LOOK.a}"`, "</a>");
    } else if (token.type === "link_close") closeLink(page, link);
    else {
      link.shown += token.content;
      writeToken(page, token);
    }
  }
}

/** Closes a link, and adds its host if the text does not name it. */
function closeLink(page: Page, { target, shown }: { target: string; shown: string }): void {
  page.html.close();
  const host = hostToShow(target, shown);
  if (host !== undefined) page.html.words(` (${host})`);
}

function writeToken(page: Page, token: Token): void {
  const { type, content, tag, nesting } = token;
  if (type === "text") page.html.words(content);
  else if (type === "softbreak" || type === "hardbreak") page.html.put("<br />\n");
  else if (type === "code_inline") writeMarked(page, `code style="${LOOK.code}"`, content);
  else if (type === "footnote_ref") writeMarked(page, `sup style="${LOOK.sup}"`, content);
  else if (type === "image") writeImage(page, token);
  else if (nesting === 1) page.html.open(tag, `</${tag}>`);
  else if (nesting === -1) page.html.close();
}

function writeMarked(page: Page, tag: string, words: string): void {
  const name = tag.slice(0, tag.indexOf(" "));
  page.html.open(tag, `</${name}>`);
  page.html.words(words);
  page.html.close();
}

/**
 * Writes a picture attached to the mail. Of others not even the URL is kept: fetching it would tell its host that the
 * mail was opened.
 */
function writeImage(page: Page, token: Token): void {
  const { picture } = noteOf(token);
  if (!picture) return page.html.words(`[${token.content}]`);
  const width = Math.min(picture.width, MAX_PICTURE_PX);
  const alt = escapeHtml(token.content || picture.filename);
  page.html.put(element(`img src="cid:${picture.cid}" alt="${alt}" width="${width}"`, LOOK.img));
}

function element(tag: string, style: string): string {
  return `<${tag} style="${style}" />`;
}

/** Returns Markdown as HTML for use within a page, uncut. */
export function markdownToHtml(text: string, guard?: LinkGuard): string {
  return writeHtml(parseMarkdown(text, { guard }), { room: Number.POSITIVE_INFINITY, own: false }).html;
}
