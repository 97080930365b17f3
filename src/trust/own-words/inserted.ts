import { isAltered } from "./html-effects.ts";
import type { Declarations } from "./html-rules.ts";
import { type HtmlElement, namesOf } from "./html-style.ts";

/**
 * Mark text that a mail program may have inserted among the author's words, until both are separated. Unicode reserves
 * these two characters for internal use; they are removed from received text.
 */
const OPEN = "\uFDD0";
const CLOSE = "\uFDD1";
const MARKS = /[\uFDD0\uFDD1]/g;
const MARKED = / ?\uFDD0([^\uFDD0\uFDD1]*)\uFDD1/g;

/**
 * Class or id of what mail programs insert: previews, rich links, chips, cloud files, mentions. Not `LPlnk…`, which
 * Outlook adds to a URL that the author typed.
 */
const INSERTED_NAME =
  /(^|[ _])lp(border|container|title|description|metadata|image|entity|urlanchor|removebtn)|_etype_|_ereadonly|(^| )_entity( |$)|owaam|owareferenceattachment|apple-rich-link|lp-rich-link|gmail_(drive_)?chip|gmail_plusreply|plusreplychip|(^|[ _-])mention|enhancr|moz-card|cloudattachment|(link|url|rich)[-_]?(preview|card)|preview[-_]?card/;

/** Elements of deleted text, which the author no longer says. */
const STRUCK = new Set(["s", "strike", "del"]);

/**
 * Returns whether an element declares that a mail program inserted it or that its text must not be edited, or changes
 * how its text looks so that the author may not have seen it, or not as text that stays.
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

/** Returns the whole text without the marks. */
export function unmarked(text: string): string {
  return text.replace(MARKS, "");
}

/** Returns the text that is not marked. */
export function withoutMarked(text: string): string {
  return text.replace(MARKED, "");
}

/** Returns the marked and unmarked parts of a text, in order. */
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
