import type { HtmlElement } from "./html-style.ts";

const MAX_HREF_CHARS = 500;
/** The longest URL that a link's text is compared with. */
const MAX_ADDRESS_CHARS = 4_000;

/** A link of an HTML mail during parsing. */
export interface Link {
  href: string;
  shown: string;
  /** Its text in place, with marks around it, and without them: it may turn out to be the URL. */
  words: { parts: string[]; at: number; text: string }[];
}

/** Returns the link that an element begins, wherever it leads. */
export function linkOf({ name, attributes }: HtmlElement): Link | null {
  const href = name === "a" ? (attributes["href"] ?? attributes["xlink:href"]) : undefined;
  return href === undefined ? null : { href: href.trim().slice(0, MAX_ADDRESS_CHARS), shown: "", words: [] };
}

/** Returns whether the URL of a link leads to a page or a mail address and differs from its text. */
export function isWorthShowing({ href, shown }: Link): boolean {
  const is_address = href.length <= MAX_HREF_CHARS && /^(https?:|mailto:)[^\s<>]+$/i.test(href);
  const bare = (text: string): string =>
    text
      .trim()
      .replace(/^(https?:\/\/|mailto:)/i, "")
      .replace(/\/$/, "");
  return is_address && shown.trim() !== "" && bare(href) !== bare(shown);
}

/** Records text of a link, which is the last of `parts`. */
export function addWords(link: Link, text: string, parts: string[] | null): void {
  if (link.shown.length > MAX_ADDRESS_CHARS) return;
  link.shown += text.slice(0, MAX_ADDRESS_CHARS + 1);
  if (parts !== null) link.words.push({ parts, at: parts.length, text });
}

/**
 * Returns whether the text of a link is its URL, or enough of it to name the host: `https://` may be missing, and the
 * rest may be abbreviated with `…`. Any other text may be a page's title.
 */
export function isItsAddress({ href, shown }: { href: string; shown: string }): boolean {
  const words = shown.trim().replace(/^<(.*)>$/s, "$1");
  if (words === "" || /\s/.test(words)) return false;
  const [start = "", end = "", ...more] = bareAddress(words.replace(/\.{3}/g, "…")).split("…");
  if (more.length > 0) return false;
  return [bareAddress(href), bareAddress(decoded(href))].some((address) => {
    const [place = ""] = address.split(/[/?#]/, 1);
    return place !== "" && start.length >= place.length && address.startsWith(start) && address.endsWith(end);
  });
}

/** Returns a URL as people write it in a sentence: without scheme, `www.` and trailing punctuation. */
export function bareAddress(address: string): string {
  return address
    .trim()
    .replace(/^(https?:\/\/|mailto:|tel:)/i, "")
    .replace(/^www\./i, "")
    .replace(/[.,;:!?)]$/, "")
    .replace(/\/$/, "")
    .toLowerCase();
}

function decoded(href: string): string {
  try {
    return decodeURI(href);
  } catch {
    return href;
  }
}
