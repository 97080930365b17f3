import { isAltered } from "./html-effects.ts";
import type { Declarations } from "./html-rules.ts";
import { type HtmlElement, namesOf } from "./html-style.ts";

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

/** Elements of words that are struck out, which are no longer their author's. */
const STRUCK = new Set(["s", "strike", "del"]);

/**
 * Whether an element says of itself that a mail program put it there, or that its words are not to be changed; or whether
 * it changes how they look so that their author may not have seen them, or not as words that stay.
 */
export function isInserted({ name, attributes }: HtmlElement, style: Declarations): boolean {
  return (
    STRUCK.has(name) ||
    isAltered(style) ||
    attributes["contenteditable"]?.toLowerCase() === "false" ||
    attributes["role"]?.toLowerCase() === "link" ||
    [style.get("user-modify"), style.get("-webkit-user-modify")].includes("read-only") ||
    INSERTED_NAME.test(namesOf(attributes))
  );
}

/** Marks words as inserted, line by line. */
export function marked(words: string): string {
  const lines = words.split("\n").map((line) => {
    const start = line.length - line.trimStart().length;
    const end = line.trimEnd().length;
    return start >= end
      ? line
      : `${line.slice(0, start)}${OPEN}${line.slice(start, end)}${CLOSE}${line.slice(end)}`;
  });
  return lines.join("\n");
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
