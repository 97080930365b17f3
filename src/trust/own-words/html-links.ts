import type { HtmlElement } from "./html-style.ts";

const MAX_HREF_CHARS = 500;
/** The longest address that the words of a link are compared with. */
const MAX_ADDRESS_CHARS = 4_000;

/** A link of an HTML mail while it is read. */
export interface Link {
  href: string;
  shown: string;
  /** Its words where they stand, with marks around them, and without the marks: they may turn out to be its address. */
  words: { parts: string[]; at: number; text: string }[];
}

/** The link that an element begins, to wherever it leads. */
export function linkOf({ name, attributes }: HtmlElement): Link | null {
  const href = name === "a" ? (attributes["href"] ?? attributes["xlink:href"]) : undefined;
  return href === undefined ? null : { href: href.trim().slice(0, MAX_ADDRESS_CHARS), shown: "", words: [] };
}

/** Whether the address of a link leads to a page or a mail, and is not what its words say anyway. */
export function isWorthShowing({ href, shown }: Link): boolean {
  const is_address = href.length <= MAX_HREF_CHARS && /^(https?:|mailto:)[^\s<>]+$/i.test(href);
  const bare = (text: string): string =>
    text
      .trim()
      .replace(/^(https?:\/\/|mailto:)/i, "")
      .replace(/\/$/, "");
  return is_address && shown.trim() !== "" && bare(href) !== bare(shown);
}

/** Notes words of a link, which are the last of `parts`. */
export function addWords(link: Link, text: string, parts: string[] | null): void {
  if (link.shown.length > MAX_ADDRESS_CHARS) return;
  link.shown += text.slice(0, MAX_ADDRESS_CHARS + 1);
  if (parts !== null) link.words.push({ parts, at: parts.length, text });
}

/**
 * Whether the words of a link are the address it leads to, or so much of it that they name its host: `https://` may be left
 * out, and what is behind or between may be shortened to `…`. All other words may be a page's title.
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

/** An address as people write it in a sentence: without scheme, `www.` and what ends the sentence. */
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
