import { urlOf } from "../../lib/web-address.ts";
import type { MarkdownIt, StateCore, Token } from "markdown-it";

import { once } from "../../lib/once.ts";

import { withoutEntities } from "../../trust/guard/as-read.ts";
import { MAX_LINK_CHARS } from "../../trust/shown/find-link.ts";
import { footnotes } from "./markdown-footnotes.ts";
import type { Picture } from "./pictures.ts";

/** The text in place of a removed URL. */
export const LEFT_OUT = "(link left out)";

/** Decides which links an answer may contain. */
export interface LinkGuard {
  /** How many were removed so far. */
  left_out: number;
  keeps: (url: string) => boolean;
  /** Returns a text without the URLs of refused links. */
  clean: (text: string) => string;
}

/** Makes a parser. The library is loaded with the first text: with its tables it would be a thirtieth of a start. */
export function markdownParser(options: Partial<MarkdownIt["options"]>): MarkdownIt {
  const Library: typeof import("markdown-it").default = require("markdown-it");
  return new Library(options);
}

const answers = once(() => {
  const parser = markdownParser({
    html: false,
    linkify: true,
    // In a mail a line break is meant: a greeting, an address, a closing.
    breaks: true,
  });
  // Guessing would turn the name of a file, such as notes.md, into a link to somebody's host.
  parser.linkify.set({ fuzzyLink: false });
  parser.use(footnotes);
  parser.validateLink = isLinkOfAnswer;
  parser.core.ruler.push("tasks", markTasks);
  parser.core.ruler.push("files", nameFiles);
  parser.core.ruler.push("guard_links", guardLinks);
  return parser;
});

/** The name of a file that comes with the answer, as models write it for one that they made. */
const FILE_NAME = /^(?:\.\/|attachment:|cid:|sandbox:\/mnt\/data\/)?([^/\\:?#]{1,200}\.(?:png|jpe?g|gif))$/i;

function isLinkOfAnswer(url: string): boolean {
  // Combining marks on one letter of a host take a URL parser quadratic time.
  if (url.length > MAX_LINK_CHARS) return false;
  return (
    FILE_NAME.test(url) || /^mailto:[^?]/i.test(url) || (/^https?:\/\//i.test(url) && urlOf(url) !== null)
  );
}

/** Options for reading an answer. */
export interface Reading {
  guard?: LinkGuard | undefined;
  pictures?: readonly Picture[] | undefined;
}

/** Extra data on a token for the two writers, besides that of markdown-it. */
interface TokenNote {
  /** The picture, created by the run, that an image shows. */
  picture?: Picture;
}

export function noteOf({ meta }: Token): TokenNote {
  return meta ?? {};
}

const BOX = /^\[([ xX])\](?=\s)/;

/** Marks list items that are tasks (`isTask`): they show a box in place of the list mark. */
function markTasks({ tokens }: StateCore): void {
  for (const [index, token] of tokens.entries()) {
    const [item, paragraph] = [tokens[index - 2], tokens[index - 1]];
    if (token.type !== "inline" || paragraph?.type !== "paragraph_open") continue;
    const [first] = token.children ?? [];
    if (item?.type !== "list_item_open" || first?.type !== "text") continue;
    const box = BOX.exec(first.content);
    if (box === null) continue;
    first.content = (box[1] === " " ? "☐" : "☑") + first.content.slice(3);
    item.info = TASK;
  }
}

const TASK = "task";

export function isTask(token: Token): boolean {
  return token.type === "list_item_open" && token.info === TASK;
}

/**
 * Replaces images and links to attached files, which cannot be fetched: by the picture if the run created it, otherwise
 * by text.
 */
function nameFiles({ tokens, env, Token }: StateCore): void {
  const { pictures = [] } = env as Reading;
  for (const token of tokens)
    if (token.children !== null) token.children = withFiles(token.children, pictures, Token);
}

function withFiles(tokens: Token[], pictures: readonly Picture[], TokenOf: StateCore["Token"]): Token[] {
  let named: string | undefined;
  return tokens.flatMap((token) => {
    if (token.type === "image") {
      const name = fileNamed(token.attrGet("src"));
      const picture = name === undefined ? undefined : pictures.find(({ filename }) => filename === name);
      token.meta = picture === undefined ? null : ({ picture } satisfies TokenNote);
    }
    if (token.type === "link_open") {
      named = fileNamed(token.attrGet("href"));
      return named === undefined ? [token] : [];
    }
    if (token.type !== "link_close" || named === undefined) return [token];
    const notice = new TokenOf("text", "", 0);
    notice.content = ` (${named})`;
    named = undefined;
    return [notice];
  });
}

function fileNamed(address: string | number | null): string | undefined {
  const name = FILE_NAME.exec(String(address ?? ""))?.[1];
  return name === undefined ? undefined : readableLink(name);
}

/** Guards links in the tokens that are rendered, so that no trick of Markdown's syntax can hide one. */
function guardLinks({ tokens, env, Token }: StateCore): void {
  const { guard } = env as { guard?: LinkGuard };
  if (guard === undefined) return;
  for (const token of tokens) {
    if (token.type === "fence" || token.type === "code_block") token.content = guard.clean(token.content);
    if (token.children !== null)
      token.children = unparted(guarded(token.children, guard, Token), guard, Token);
  }
}

function guarded(tokens: Token[], guard: LinkGuard, TokenOf: StateCore["Token"]): Token[] {
  let words = "";
  let is_left_out = false;
  return tokens.flatMap((token) => {
    if (token.type === "link_open") {
      words = "";
      is_left_out = !guard.keeps(String(token.attrGet("href") ?? ""));
      return is_left_out ? [] : [token];
    }
    if (token.type === "link_close" && is_left_out) {
      is_left_out = false;
      if (words.trimEnd().endsWith(LEFT_OUT)) return [];
      guard.left_out += 1;
      const notice = new TokenOf("text", "", 0);
      notice.content = ` ${LEFT_OUT}`;
      return [notice];
    }
    token.content = guard.clean(token.content);
    words += token.content;
    return [token];
  });
}

/**
 * Returns the tokens of a line, or its words alone where these form a URL that may not stay: a program that makes a plain text
 * of the HTML joins what bold letters, code or a link part.
 */
function unparted(tokens: Token[], guard: LinkGuard, TokenOf: StateCore["Token"]): Token[] {
  const words = tokens
    .map(({ type, content }) => (/^(?:soft|hard)break$/.test(type) ? "\n" : content))
    .join("");
  const cleaned = guard.clean(words);
  if (cleaned === words) return tokens;
  const text = new TokenOf("text", "", 0);
  text.content = cleaned;
  return [text];
}

/** Returns the tokens of a text, in which the guard has removed the URLs of refused links. */
export function parseMarkdown(text: string, { guard, pictures }: Reading = {}): Token[] {
  return answers().parse(text, { guard, pictures });
}

export type { Token };

/** A parser for blocks only: inline elements, such as links, take most of the time. */
const blocks = once(() => {
  const parser = markdownParser({ html: false });
  parser.core.ruler.enableOnly(["normalize", "block"]);
  return parser;
});

/** Returns the blocks of code in a text, each with the language behind its first mark. */
export function fencesOf(text: string): { language: string; content: string }[] {
  return blocks()
    .parse(text, {})
    .filter(({ type }) => type === "fence")
    .map(({ info, content }) => ({ language: info.trim().toLowerCase(), content }));
}

/** A parser that accepts URLs of any scheme, as other programs do. */
const reader = once(() => {
  const parser = markdownParser({ html: false, linkify: true });
  parser.linkify.set({ fuzzyLink: false });
  parser.validateLink = (url) => url.length <= MAX_LINK_CHARS;
  return parser;
});

/** Returns the tokens within the blocks of a text. */
function inlineTokens(text: string): Token[] {
  const tokens = reader().parse(text, {});
  return tokens.flatMap(({ children }) => children ?? []);
}

/** Returns where links and pictures lead, of tokens that may be such. */
function targetsOf(tokens: Token[]): string[] {
  const targets = tokens.map((token) => token.attrGet("href") ?? token.attrGet("src"));
  return targets.filter((target) => target !== null).map(String);
}

/**
 * Returns the targets of all links in a Markdown text, and its words, with escapes and character references resolved.
 */
export function readMarkdown(text: string): { links: string[]; words: string[] } {
  const tokens = inlineTokens(text);
  return {
    links: targetsOf(tokens),
    words: tokens.filter(({ type }) => type === "text").map(({ content }) => content),
  };
}

/** Returns the targets of the links and pictures of a Markdown text that are written as such. */
export function targetsIn(text: string): string[] {
  return targetsOf(inlineTokens(text).filter(({ markup }) => markup !== "linkify"));
}

/** A writer that makes HTML of all that any program does: it leaves tags as they are, and links to whatever they lead. */
const shower = once(() => {
  const parser = markdownParser({ html: true });
  parser.validateLink = () => true;
  return parser;
});

/** Returns a text as a program may mail it that takes it for Markdown: to be read here, and shown to nobody. */
export function markdownAsHtml(text: string): string {
  return shower().render(text);
}

const REFERENCE = /&(?:#(?:x[0-9a-f]+|\d+);?|[a-z][a-z0-9]{1,31};)/gi;
const ESCAPED = /\\(?=[:/.@?#=&-])/g;

/** Returns the same Markdown with all URLs in plain characters. */
export function withoutDisguise(text: string): string {
  const read = text.replaceAll(REFERENCE, (reference) => {
    const character = characterOf(reference);
    return /^[\s&<>"]/.test(character) ? reference : character;
  });
  // Text that looks like a reference only after this was none before.
  return read
    .replaceAll(REFERENCE, (late) => late.replace(/^&(?!(?:amp|lt|gt|quot);)/, "&amp;"))
    .replaceAll(ESCAPED, "");
}

function characterOf(reference: string): string {
  return withoutEntities(reference.endsWith(";") ? reference : `${reference};`);
}

/** Returns plain text escaped for HTML. */
export function escapeHtml(text: string): string {
  return answers().utils.escapeHtml(text);
}

/**
 * Returns the host of a link whose text does not name it, so that a reader sees where it leads. Text before an "@" in a
 * URL does not count as its host.
 */
export function hostToShow(target: string, shown: string): string | undefined {
  const url = new URL(target);
  const words = shown.trim().replace(/\/$/, "");
  const plain = target.replace(/\/$/, "");
  if (url.protocol === "mailto:") {
    return `mailto:${words}` === plain || words === plain ? undefined : readableLink(url.pathname);
  }
  const saysItself = words === plain || words === readableLink(plain);
  return saysItself && url.username === "" ? undefined : url.host;
}

/** Returns a URL as linkify shows it, with escapes and punycode decoded. */
export function readableLink(url: string): string {
  return answers().normalizeLinkText(url);
}
