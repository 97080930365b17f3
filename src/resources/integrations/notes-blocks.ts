import type { Token } from "markdown-it";
import { once } from "../../lib/once.ts";
import { markdownParser } from "../../mail/writing/markdown.ts";
import { MAX_TEXTS, plainText, type RichText, richTextOf } from "./notes-rich-text.ts";

/** Notion's limits of a request: of one list of blocks, of all blocks in it, and of its bytes (500 KB). */
const MAX_SIBLINGS = 100;
const MAX_BLOCKS = 1_000;
const MAX_COLUMNS = 100;
const MAX_BATCH_BYTES = 400_000;
/** The depth of blocks in one request: a block, its children, and theirs. */
const MAX_DEPTH = 2;

/** Notion's languages that people write behind a fence, and other names for them. */
const LANGUAGES =
  "bash c c# c++ css diff docker go graphql html java javascript json kotlin latex lua makefile markdown php python ruby rust scala shell sql swift typescript xml yaml".split(
    " ",
  );
const OTHER_NAMES: Record<string, string> = {
  cpp: "c++",
  cs: "c#",
  dockerfile: "docker",
  js: "javascript",
  md: "markdown",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "shell",
  ts: "typescript",
  yml: "yaml",
};

const parser = once(() => markdownParser({ html: false }));

interface Block {
  type: string;
  /** The members of `[type]` without its children. */
  data: Record<string, unknown>;
  children: Block[];
}

/** Markdown as Notion's blocks, in lists that are small enough to be sent one by one. */
export function batchesOf(text: string): unknown[][] {
  const blocks = readBlocks({ tokens: parser().parse(text, {}), at: 0 }).flatMap((block) => fitted(block, 0));
  const batches: unknown[][] = [];
  let [count, bytes] = [Infinity, 0];
  for (const block of blocks) {
    const sent = asSent(block);
    const [own_count, own_bytes] = [countOf(block), Buffer.byteLength(JSON.stringify(sent))];
    const last = batches.at(-1);
    const fits = count + own_count <= MAX_BLOCKS && bytes + own_bytes <= MAX_BATCH_BYTES;
    if (last !== undefined && fits && last.length < MAX_SIBLINGS) {
      last.push(sent);
      [count, bytes] = [count + own_count, bytes + own_bytes];
    } else {
      batches.push([sent]);
      [count, bytes] = [own_count, own_bytes];
    }
  }
  return batches;
}

interface Cursor {
  tokens: Token[];
  at: number;
}

/** Reads blocks up to the token that closes the present one, or to the end. */
function readBlocks(cursor: Cursor): Block[] {
  const blocks: Block[] = [];
  for (;;) {
    const token = cursor.tokens[cursor.at];
    if (token === undefined) return blocks;
    cursor.at += 1;
    if (token.nesting === -1) return blocks;
    blocks.push(...readBlock(token, cursor));
  }
}

function readBlock(token: Token, cursor: Cursor): Block[] {
  if (token.type === "fence" || token.type === "code_block") return codeBlocks(token);
  if (token.type === "hr") return [{ type: "divider", data: {}, children: [] }];
  if (token.type === "inline") return paragraphs(richTextOf(token.children ?? []));
  if (token.type === "table_open") return tableBlocks(cursor);
  const inner = token.nesting === 1 ? readBlocks(cursor) : [];
  if (token.type === "heading_open") {
    const { children, ...heading } = headed(`heading_${Math.min(Number(token.tag.slice(1)), 3)}`, inner);
    return [{ ...heading, children: [] }, ...children];
  }
  if (token.type === "blockquote_open") return [headed("quote", inner)];
  if (token.type === "list_item_open") return [listItem(inner)];
  return token.type === "ordered_list_open" ? inner.map(numbered) : inner;
}

function paragraphs(texts: RichText[]): Block[] {
  const count = Math.ceil(texts.length / MAX_TEXTS);
  return Array.from({ length: count }, (_, index) => {
    const rich_text = texts.slice(index * MAX_TEXTS, (index + 1) * MAX_TEXTS);
    return { type: "paragraph", data: { rich_text }, children: [] };
  });
}

/** A block whose text is its first paragraph, and whose children are the rest. */
function headed(type: string, inner: Block[]): Block {
  const [first, ...rest] = inner;
  return first?.type === "paragraph"
    ? { type, data: first.data, children: [...first.children, ...rest] }
    : { type, data: { rich_text: [] }, children: inner };
}

function listItem(inner: Block[]): Block {
  const item = headed("bulleted_list_item", inner);
  const [first, ...rest] = item.data["rich_text"] as RichText[];
  const box = /^\[([ xX])\] /.exec(first?.text.content ?? "");
  if (first === undefined || box === null) return item;
  const text = { ...first, text: { ...first.text, content: first.text.content.slice(box[0].length) } };
  return { ...item, type: "to_do", data: { rich_text: [text, ...rest], checked: box[1] !== " " } };
}

function numbered(block: Block): Block {
  return block.type === "bulleted_list_item" ? { ...block, type: "numbered_list_item" } : block;
}

function codeBlocks({ content, info }: Token): Block[] {
  const name = info.trim().split(/\s/)[0]?.toLowerCase() ?? "";
  const named = OTHER_NAMES[name] ?? name;
  const language = LANGUAGES.includes(named) ? named : "plain text";
  return paragraphs(plainText(content.replace(/\n$/, ""))).map(({ data }) => ({
    type: "code",
    data: { ...data, language },
    children: [],
  }));
}

function tableBlocks(cursor: Cursor): Block[] {
  const rows: RichText[][][] = [];
  for (;;) {
    const token = cursor.tokens[cursor.at];
    cursor.at += 1;
    if (token === undefined || token.type === "table_close") break;
    if (token.type === "tr_open") rows.push([]);
    if (token.type === "inline") rows.at(-1)?.push(richTextOf(token.children ?? []).slice(0, MAX_TEXTS));
  }
  const table_width = Math.min(MAX_COLUMNS, Math.max(1, ...rows.map((row) => row.length)));
  const children = rows.map((row) => ({
    type: "table_row",
    data: { cells: Array.from({ length: table_width }, (_, index) => row[index] ?? []) },
    children: [],
  }));
  return Array.from({ length: Math.ceil(children.length / MAX_SIBLINGS) }, (_, index) => ({
    type: "table",
    data: { table_width, has_column_header: index === 0, has_row_header: false },
    children: children.slice(index * MAX_SIBLINGS, (index + 1) * MAX_SIBLINGS),
  }));
}

/**
 * A block as Notion takes it. Children that are nested too deep, or beyond the number that it takes, follow their
 * parent instead.
 */
function fitted(block: Block, depth: number): Block[] {
  if (block.type === "table") return depth < MAX_DEPTH ? [block] : block.children.map(rowAsParagraph);
  const children = block.children.flatMap((child) => fitted(child, depth + 1));
  const kept = depth < MAX_DEPTH ? MAX_SIBLINGS : 0;
  return [{ ...block, children: children.slice(0, kept) }, ...children.slice(kept)];
}

function rowAsParagraph(row: Block): Block {
  const cells = row.data["cells"] as RichText[][];
  const rich_text = cells.flatMap((cell, index) => (index === 0 ? cell : plainText(" | ").concat(cell)));
  return { type: "paragraph", data: { rich_text: rich_text.slice(0, MAX_TEXTS) }, children: [] };
}

function countOf({ children }: Block): number {
  return children.reduce((count, child) => count + countOf(child), 1);
}

function asSent({ type, data, children }: Block): Record<string, unknown> {
  const nested = children.length === 0 ? {} : { children: children.map(asSent) };
  return { object: "block", type, [type]: { ...data, ...nested } };
}
