import type { Declarations } from "./html-rules.ts";
import type { HtmlElement } from "./html-style.ts";

/**
 * Stand around words that a mail program may have put between those of the author, until the two are parted: Unicode keeps
 * these two characters for a program's own use. They are taken out of what comes in.
 */
const OPEN = "\uFDD0";
const CLOSE = "\uFDD1";
const MARKS = /[\uFDD0\uFDD1]/g;
const MARKED = / ?\uFDD0([^\uFDD0\uFDD1]*)\uFDD1/g;

/**
 * Class or id of what mail programs insert: previews, rich links, chips, files in a cloud, mentions. `LPlnk…`, which Outlook
 * gives to an address that the author typed, is none of them.
 */
const INSERTED_NAME =
  /(^|[ _])lp(border|container|title|description|metadata|image|entity|urlanchor|removebtn)|_etype_|_ereadonly|(^| )_entity( |$)|owaam|owareferenceattachment|apple-rich-link|lp-rich-link|gmail_(drive_)?chip|gmail_plusreply|plusreplychip|(^|[ _-])mention|enhancr|moz-card|cloudattachment|(link|url|rich)[-_]?(preview|card)|preview[-_]?card/;

/** `names`: class and id, in small letters. */
export function isInserted({ attributes }: HtmlElement, style: Declarations, names: string): boolean {
  return (
    attributes["contenteditable"]?.toLowerCase() === "false" ||
    attributes["role"]?.toLowerCase() === "link" ||
    [style.get("user-modify"), style.get("-webkit-user-modify")].includes("read-only") ||
    INSERTED_NAME.test(names)
  );
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

/** Marks words as inserted, line by line. */
export function marked(words: string): string {
  return words.replace(/[^\s](?:[^\n]*[^\s])?/g, (line) => `${OPEN}${line}${CLOSE}`);
}

export function isMarked(text: string): boolean {
  return text.includes(OPEN);
}

/** All words, without the marks. */
export function unmarked(text: string): string {
  return text.replace(MARKS, "");
}

/** The words that are not marked. */
export function withoutMarked(text: string): string {
  return text.replace(MARKED, "");
}

/** The words of a text in their order, by whether they are marked. */
export function partsByMark(text: string): { inserted: boolean; text: string }[] {
  return text.split(OPEN).flatMap((part, index) => {
    const end = index === 0 ? -1 : part.indexOf(CLOSE);
    if (end === -1) return [{ inserted: index > 0, text: part }];
    return [
      { inserted: true, text: part.slice(0, end) },
      { inserted: false, text: part.slice(end + 1) },
    ];
  });
}
