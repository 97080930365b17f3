import sanitizeHtml from "sanitize-html";

import { LOOK, QUIET_CLASS } from "./look.ts";
import { escapeHtml, hostToShow, isTask, type LinkGuard, noteOf, parseMarkdown, type Token } from "./markdown.ts";
import { MAX_PICTURE_PX } from "./pictures.ts";
import { type Column, type Table, tableAt } from "./tables.ts";

/** Text is written in pieces of so many characters, of which the last ones may find no room. */
const PIECE = /[\s\S]{1,1000}/gu;
/** Words of a cell that are to stay beside each other, and letters of a word that a telephone can show. */
const SHORT_CELL_CHARS = 24;
const LONG_WORD = /\S{25}/;
const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC]/;

const NAMES =
  "h1 h2 h3 h4 h5 h6 p br hr blockquote pre code ul ol li em strong s sup a img table thead tbody tr th td div".split(
    " ",
  );

/** In each element; of some only the values that are written. */
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
  th: ["nowrap"],
  td: ["nowrap"],
};

/** The second wall, should the writer ever be wrong: no element, style or address but ours. */
const ALLOWED: sanitizeHtml.IOptions = {
  allowedTags: NAMES,
  allowedAttributes: Object.fromEntries(
    NAMES.map((name) => [name, [...ATTRIBUTES, ...(MORE_ATTRIBUTES[name] ?? [])]]),
  ),
  // Each is one of ours, letter by letter.
  parseStyleAttributes: false,
  allowedSchemes: ["http", "https", "mailto"],
  allowedSchemesByTag: { img: ["cid"] },
  allowProtocolRelative: false,
};

interface Wanted {
  /** In bytes of UTF-8. */
  room: number;
  /** Whether we wrote it: a paragraph that is nothing but code then quotes a sentence, and is set as one. */
  own: boolean;
}

interface Page extends Wanted {
  parts: string[];
  bytes: number;
  /** What ends the elements that are open, the innermost last. */
  open: string[];
  closing_bytes: number;
  full: boolean;
  /** Where it may end: how many parts there are, and what ends what is open. */
  end: { parts: number; bytes: number; close: string };
  /** Whether directions are found block by block. */
  auto: boolean;
}

/** The blocks as HTML without scripts, styles of others or pictures from elsewhere; `cut`: there was no room for all. */
export function writeHtml(tokens: readonly Token[], wanted: Wanted): { html: string; cut: boolean } {
  const page: Page = {
    ...wanted,
    parts: [],
    bytes: 0,
    open: [],
    closing_bytes: 0,
    full: false,
    end: { parts: 0, bytes: 0, close: "" },
    auto: tokens.some(({ content }) => RIGHT_TO_LEFT.test(content)),
  };
  for (let at = 0; at < tokens.length && !page.full; ) at = writeBlock(page, tokens, at);
  return { html: sanitizeHtml(page.full ? cutOff(page) : page.parts.join(""), ALLOWED), cut: page.full };
}

/** Up to the end of a block, if that does not leave out most of it. */
function cutOff({ parts, bytes, open, end }: Page): string {
  if (end.bytes >= bytes / 2) return parts.slice(0, end.parts).join("") + end.close;
  return parts.join("") + open.toReversed().join("");
}

/** Whether there was room for it. */
function put(page: Page, part: string): boolean {
  const bytes = Buffer.byteLength(part);
  if (page.full || page.bytes + bytes + page.closing_bytes > page.room) {
    page.full = true;
    return false;
  }
  page.parts.push(part);
  page.bytes += bytes;
  return true;
}

function putWords(page: Page, words: string): void {
  for (const piece of words.length <= 1_000 ? [words] : (words.match(PIECE) ?? []))
    if (!put(page, escapeHtml(piece))) return;
}

/** `tag` without its brackets. */
function open(page: Page, tag: string, close: string): void {
  page.closing_bytes += close.length;
  if (!put(page, `<${tag}>`)) {
    page.closing_bytes -= close.length;
    return;
  }
  page.open.push(close);
}

function close(page: Page): void {
  const tag = page.open.pop() ?? "";
  page.closing_bytes -= tag.length;
  // There is room: it was counted when it was opened.
  if (!page.full) put(page, tag);
  else page.open.push(tag);
}

function mayEnd(page: Page): void {
  if (page.full) return;
  page.end = { parts: page.parts.length, bytes: page.bytes, close: page.open.toReversed().join("") };
}

/** Writes what begins with a token, and gives the index of what comes next. */
function writeBlock(page: Page, tokens: readonly Token[], at: number): number {
  const token = tokens[at];
  if (token === undefined) return tokens.length;
  if (token.type === "table_open") {
    const table = tableAt(tokens, at);
    writeTable(page, table);
    mayEnd(page);
    return table.end;
  }
  if (token.type === "inline") writeInline(page, token);
  else if (token.type === "fence" || token.type === "code_block") writeCode(page, token);
  else if (token.type === "hr") put(page, element("hr", LOOK.hr));
  else if (token.nesting === 1) openBlock(page, tokens, at);
  else if (token.nesting === -1 && !token.hidden) closeBlock(page, token);
  return at + 1;
}

function closeBlock(page: Page, { type, level }: Token): void {
  close(page);
  put(page, "\n");
  if (level === 0 || type === "list_item_close") mayEnd(page);
}

function openBlock(page: Page, tokens: readonly Token[], at: number): void {
  const token = tokens[at];
  if (token === undefined || token.hidden) return;
  // What is inside goes the same way: an element with a direction of its own would not count for the one around it.
  const dir = page.auto && token.level === 0 ? ' dir="auto"' : "";
  const start = token.tag === "ol" && token.attrGet("start") !== null ? ` start="${token.attrGet("start")}"` : "";
  const name = token.type === "footnote_open" ? "p" : token.tag;
  const soft = token.type === "footnote_open" ? ` class="${QUIET_CLASS}"` : "";
  open(page, `${name}${start}${dir}${soft} style="${LOOK[lookOf(page, tokens, at)]}"`, `</${name}>`);
  if (token.type === "footnote_open") put(page, `[${token.info}] `);
}

function lookOf(page: Page, tokens: readonly Token[], at: number): keyof typeof LOOK {
  const token = tokens[at];
  const tag = token?.tag ?? "p";
  const auto = page.auto ? "_auto" : "";
  if (token?.type === "footnote_open") return "note";
  if (token && isTask(token)) return "task";
  if (tag === "blockquote") return `blockquote${auto}`;
  if (tag === "ul" || tag === "ol") return page.open.includes("</li>") ? `list_within${auto}` : `list${auto}`;
  if (tag === "p") return page.open.length > 0 ? "p_within" : "p";
  if (/^h[1-6]$/.test(tag)) return page.parts.length === 0 ? (tag as "h1") : `${tag as "h1"}_below`;
  return "li";
}

/** Line by line, so that it may end behind each. */
function writeCode(page: Page, { content }: Token): void {
  open(page, `pre style="${LOOK.pre}"`, "</pre>\n");
  for (const line of content.split(/(?<=\n)/)) {
    putWords(page, line);
    if (content.length > page.room / 4) mayEnd(page);
  }
  close(page);
  if (page.open.length === 0) mayEnd(page);
}

function writeTable(page: Page, { columns, head, rows }: Table): void {
  const dir = page.auto && page.open.length === 0 ? ' dir="auto"' : "";
  open(page, `div${dir} style="${LOOK.wide}"`, "</div>\n");
  open(page, `table border="0" cellpadding="0" cellspacing="0" style="${LOOK.table}"`, "</table>");
  open(page, "thead", "</thead>\n");
  writeRow(page, columns, head, true);
  close(page);
  if (rows.length > 0) {
    open(page, "tbody", "</tbody>");
    for (const row of rows) {
      writeRow(page, columns, row, false);
      mayEnd(page);
      if (page.full) break;
    }
    close(page);
  }
  close(page);
  close(page);
}

function writeRow(page: Page, columns: Column[], cells: Token[], isHead: boolean): void {
  open(page, 'tr valign="top"', "</tr>\n");
  for (const [at, cell] of cells.entries()) {
    const { side, numbers } = columns[at] ?? { side: undefined, numbers: false };
    const name = isHead ? "th" : "td";
    const left = isHead && !page.auto ? ' align="left"' : "";
    const align = side === undefined ? left : ` align="${side}"`;
    const look = isHead ? (page.auto && side === undefined ? "th_auto" : "th") : cellLook(cell, numbers);
    open(page, `${name}${align}${numbers ? " nowrap" : ""} style="${LOOK[look]}"`, `</${name}>`);
    writeInline(page, cell);
    close(page);
    if (page.full) return;
  }
  close(page);
}

function cellLook(cell: Token, numbers: boolean): "td" | "td_words" | "td_long" {
  const { content } = cell;
  if (numbers || content.length <= SHORT_CELL_CHARS) return "td";
  return LONG_WORD.test(content) ? "td_long" : "td_words";
}

function writeInline(page: Page, { children }: Token): void {
  const tokens = children ?? [];
  const [only] = tokens;
  if (page.own && tokens.length === 1 && only?.type === "code_inline") return putWords(page, only.content);
  let link: { target: string; shown: string } | undefined;
  for (const token of tokens) {
    if (page.full) return;
    if (token.type === "link_open") {
      link = { target: String(token.attrGet("href") ?? ""), shown: "" };
      open(page, `a href="${escapeHtml(link.target)}" style="${LOOK.a}"`, "</a>");
    } else if (token.type === "link_close") {
      close(page);
      const host = link && hostToShow(link.target, link.shown);
      if (host !== undefined) putWords(page, ` (${host})`);
      link = undefined;
    } else {
      if (link) link.shown += token.content;
      writeToken(page, token);
    }
  }
}

function writeToken(page: Page, token: Token): void {
  const { type, content, tag, nesting } = token;
  if (type === "text") putWords(page, content);
  else if (type === "softbreak" || type === "hardbreak") put(page, "<br />\n");
  else if (type === "code_inline") writeMarked(page, `code style="${LOOK.code}"`, content);
  else if (type === "footnote_ref") writeMarked(page, `sup style="${LOOK.sup}"`, content);
  else if (type === "image") writeImage(page, token);
  else if (nesting === 1) open(page, tag, `</${tag}>`);
  else if (nesting === -1) close(page);
}

function writeMarked(page: Page, tag: string, words: string): void {
  const name = tag.slice(0, tag.indexOf(" "));
  open(page, tag, `</${name}>`);
  putWords(page, words);
  close(page);
}

/** Not even a picture's address is kept, if it is none of ours: fetching it would tell its host that the mail was opened. */
function writeImage(page: Page, token: Token): void {
  const { picture } = noteOf(token);
  if (!picture) return putWords(page, `[${token.content}]`);
  const width = Math.min(picture.width, MAX_PICTURE_PX);
  const alt = escapeHtml(token.content || picture.filename);
  put(page, element(`img src="cid:${picture.cid}" alt="${alt}" width="${width}"`, LOOK.img));
}

function element(tag: string, style: string): string {
  return `<${tag} style="${style}" />`;
}

/** Markdown as HTML to stand in any page, whole. */
export function markdownToHtml(text: string, guard?: LinkGuard): string {
  return writeHtml(parseMarkdown(text, { guard }), { room: Number.POSITIVE_INFINITY, own: false }).html;
}
