import MarkdownIt, { type StateCore, type Token } from "markdown-it";
import sanitizeHtml from "sanitize-html";

import { MAX_LINK_CHARS } from "./find-link.ts";

/** What stands in place of an address. */
export const LEFT_OUT = "(link left out)";

/** Decides which addresses an answer may show. */
export interface LinkGuard {
  /** Addresses taken out so far. */
  left_out: number;
  keeps: (url: string) => boolean;
  /** The text without the addresses that may not stay. */
  clean: (text: string) => string;
}

const markdown = new MarkdownIt({
  html: false,
  linkify: true,
  // In a mail a line break is meant: a greeting, an address, a closing.
  breaks: true,
});

// Guessing would turn the name of a file, such as notes.md, into a link to somebody's host.
markdown.linkify.set({ fuzzyLink: false });

// Marks that pile up on one letter of a host take a URL parser the square of their number.
markdown.validateLink = (url) =>
  url.length <= MAX_LINK_CHARS &&
  (/^mailto:[^?]/i.test(url) || (/^https?:\/\//i.test(url) && URL.canParse(url)));

/** Not even a picture's address is kept: fetching it would tell its host that the mail was opened. */
markdown.renderer.rules["image"] = (tokens, index) =>
  markdown.utils.escapeHtml(`[${tokens[index]?.content ?? ""}]`);

markdown.renderer.rules["link_close"] = (tokens, index) => {
  let start = index;
  while (start > 0 && tokens[start]?.type !== "link_open") start -= 1;
  const target = String(tokens[start]?.attrGet("href") ?? "");
  const shown = tokens
    .slice(start + 1, index)
    .map((token) => token.content)
    .join("");
  const host = hostToShow(target, shown);
  return host === undefined ? "</a>" : `</a> (${markdown.utils.escapeHtml(host)})`;
};

const ALLOWED = {
  allowedTags:
    "h1 h2 h3 h4 h5 h6 p br hr blockquote pre code ul ol li em strong s a table thead tbody tr th td".split(
      " ",
    ),
  allowedAttributes: { a: ["href"], ol: ["start"] },
  allowedSchemes: ["http", "https", "mailto"],
  allowProtocolRelative: false,
};

/** Looked at as the tokens that are rendered: no trick of Markdown's syntax can hide a link from that. */
markdown.core.ruler.push("guard_links", ({ tokens, env, Token }) => {
  const { guard } = env as { guard?: LinkGuard };
  if (guard === undefined) return;
  for (const token of tokens) {
    if (token.type === "fence" || token.type === "code_block") token.content = guard.clean(token.content);
    if (token.children !== null) token.children = guarded(token.children, guard, Token);
  }
});

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

/** Markdown as HTML without scripts, styles or pictures, in which every link shows where it leads. */
export function markdownToHtml(text: string, guard?: LinkGuard): string {
  // The renderer makes no raw HTML; the sanitiser is the second wall, should it ever be wrong about that.
  return sanitizeHtml(markdown.render(text, { guard }), {
    ...ALLOWED,
    ...(guard === undefined ? {} : { transformTags: { a: withoutStranger(guard) } }),
  });
}

/** Only as far as blocks: what is in a line, such as links, takes most of the time. */
const blocks = new MarkdownIt({ html: false });
blocks.core.ruler.enableOnly(["normalize", "block"]);

/** What stands between marks of code, and the word behind the first of them. */
export function fencesOf(text: string): { language: string; content: string }[] {
  return blocks
    .parse(text, {})
    .filter(({ type }) => type === "fence")
    .map(({ info, content }) => ({ language: info.trim().toLowerCase(), content }));
}

/** Of a link that may not stay only its words remain. */
export function withoutStranger(guard: LinkGuard): sanitizeHtml.Transformer {
  return (tagName, attribs) => ({ tagName, attribs: guard.keeps(attribs["href"] ?? "") ? attribs : {} });
}

/** Other programs take addresses of any scheme, so that this one does. */
const reader = new MarkdownIt({ html: false, linkify: true });
reader.linkify.set({ fuzzyLink: false });
reader.validateLink = (url) => url.length <= MAX_LINK_CHARS;

/** What is there once Markdown has read its escapes and character references: where links lead, and words. */
export function readMarkdown(text: string): { links: string[]; words: string[] } {
  const tokens = reader.parse(text, {}).flatMap(({ children }) => children ?? []);
  const targets = tokens.map((token) => token.attrGet("href") ?? token.attrGet("src"));
  return {
    links: targets.filter((target) => target !== null).map(String),
    words: tokens.filter(({ type }) => type === "text").map(({ content }) => content),
  };
}

const REFERENCE = /&(?:#(?:x[0-9a-f]{1,6}|\d{1,7});?|[a-z][a-z0-9]{1,31};)/gi;
const ESCAPED = /\\(?=[:/.@?#=&-])/g;

/** The same Markdown with nothing of an address written in other characters. */
export function withoutDisguise(text: string): string {
  const read = text.replaceAll(REFERENCE, (reference) => {
    const character = characterOf(reference);
    return /^[\s&<>"]/.test(character) ? reference : character;
  });
  // What looks like a reference only now was none before.
  return read
    .replaceAll(REFERENCE, (late) => late.replace(/^&(?!(?:amp|lt|gt|quot);)/, "&amp;"))
    .replaceAll(ESCAPED, "");
}

function characterOf(reference: string): string {
  return markdown.utils.unescapeAll(reference.endsWith(";") ? reference : `${reference};`);
}

/** Plain text as it stands inside HTML. */
export function escapeHtml(text: string): string {
  return markdown.utils.escapeHtml(text);
}

/** The host of a link whose words do not already say it; text before an "@" in an address says nothing of its host. */
function hostToShow(target: string, shown: string): string | undefined {
  const url = new URL(target);
  const words = shown.trim().replace(/\/$/, "");
  const plain = target.replace(/\/$/, "");
  if (url.protocol === "mailto:") {
    return `mailto:${words}` === plain || words === plain ? undefined : readableLink(url.pathname);
  }
  const saysItself = words === plain || words === readableLink(plain);
  return saysItself && url.username === "" ? undefined : url.host;
}

/** linkify shows an address with its escapes and punycode read back. */
export function readableLink(url: string): string {
  return markdown.normalizeLinkText(url);
}
