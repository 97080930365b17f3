import { urlOf } from "../../lib/web-address.ts";
import type { Token } from "markdown-it";
import { member } from "../../lib/foreign-json.ts";

/** Notion's limits of a request: of one text, of one address, and of the texts in one block. */
const MAX_TEXT_CHARS = 2_000;
const MAX_URL_CHARS = 2_000;
export const MAX_TEXTS = 100;

const MARKS: Record<string, string> = { strong: "bold", em: "italic", s: "strikethrough" };

/** Rich text of Notion (https://developers.notion.com/reference/rich-text). */
export interface RichText {
  type: "text";
  text: { content: string; link: { url: string } | null };
  annotations: Record<string, boolean>;
}

/** The content of a line of Markdown as rich text. */
export function richTextOf(tokens: Token[]): RichText[] {
  const texts: RichText[] = [];
  const marks = new Set<string>();
  let link: string | null = null;
  for (const { type, content, attrs } of tokens) {
    const mark = MARKS[type.replace(/_(open|close)$/, "")];
    if (mark !== undefined && type.endsWith("_open")) marks.add(mark);
    else if (mark !== undefined) marks.delete(mark);
    else if (type === "link_open") link = addressIn(attrs, "href");
    else if (type === "link_close") link = null;
    // A picture becomes its words with a link to it: shown as a picture, it would be fetched by whoever opens the page.
    else if (type === "image") texts.push(...textsOf(content, marks, addressIn(attrs, "src")));
    else if (type === "code_inline") texts.push(...textsOf(content, new Set([...marks, "code"]), link));
    else texts.push(...textsOf(type.endsWith("break") ? "\n" : content, marks, link));
  }
  return texts;
}

export function plainText(content: string): RichText[] {
  return textsOf(content, new Set(), null);
}

/** Notion's texts as Markdown. */
export function markdownOf(texts: unknown[]): string {
  return texts.map(markdownOfOne).join("");
}

/** Notion's texts without their marks. */
export function plainTextOf(texts: unknown[]): string {
  return texts.map(plain).join("");
}

function addressIn(attrs: Token["attrs"], name: string): string | null {
  const url = String(attrs?.find(([key]) => key === name)?.[1] ?? "");
  return url.length <= MAX_URL_CHARS && /^(https?|mailto):/i.test(url) && urlOf(url) !== null ? url : null;
}

function textsOf(content: string, marks: Set<string>, link: string | null): RichText[] {
  return piecesOf(content.toWellFormed()).map((piece) => ({
    type: "text",
    text: { content: piece, link: link === null ? null : { url: link } },
    annotations: Object.fromEntries([...marks].map((mark) => [mark, true])),
  }));
}

/** The pieces of a long text; no character is cut in two. */
function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const piece = text.slice(at, at + MAX_TEXT_CHARS);
    const whole = piece.isWellFormed() ? piece : piece.slice(0, -1);
    pieces.push(whole);
    at += whole.length;
  }
  return pieces;
}

function markdownOfOne(one: unknown): string {
  const text = plain(one);
  const core = text.trim();
  if (core === "") return text;
  const has = (name: string): boolean => member(member(one, "annotations"), name) === true;
  let marked = has("code") ? `\`${core}\`` : core;
  if (has("bold")) marked = `**${marked}**`;
  if (has("italic")) marked = `*${marked}*`;
  if (has("strikethrough")) marked = `~~${marked}~~`;
  const href = member(one, "href");
  if (typeof href === "string") marked = `[${marked}](${href})`;
  // Blanks stand outside of the marks, which they would undo inside.
  const start = text.length - text.trimStart().length;
  return text.slice(0, start) + marked + text.slice(start + core.length);
}

function plain(one: unknown): string {
  const text = member(one, "plain_text");
  return typeof text === "string" ? text : "";
}
