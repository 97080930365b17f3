/** A few marks up to a blank at which every program ends an address: many take other blanks of Unicode for a part of it. */
const ENDS = /^([)\]}(*_~.,;:!?|`'"’”“»›…]{0,4})(?:$|[\t\n\v\f\r <])/;
/** In JSON what is open says which brackets follow. */
const ENDS_IN_JSON = /^"[\]}]{0,20},?(?:$|[\t\n\v\f\r <])/;
const ENDS_TAG = /^["']?\s?\/?>/;
const MAX_END_CHARS = 30;
/** How far before an address is looked for what is open there. */
const MAX_BEFORE_CHARS = 520;
const IN_TAG = /<[a-z][^<>]*$/i;
/** The beginning of an element, all of whose text may be an address, as none of those of HTML for words is. */
const BEHIND_TAG =
  /<(?!(?:p|div|br|hr|span|b|i|u|em|strong|small|li|td|th|dd|dt|h[1-6]|blockquote|section|article)[\s/>])[a-z][^<>]*>\s*$/i;
const IN_QUOTES = /^(?:[^"]*"[^"]*")*[^"]*"[^"]*$|(?:^|[\s=:({,])'[^']*$/;
/** What has to stand right behind an address that stands right behind it. */
const CLOSED_BY = new Map(Object.entries({ "(": ")", "<": ">", "[": "]", '"': '"', "'": "'", "|": "|" }));
const SAME_MARK = /[`*_~]/;
/** Blanks, letters and marks that open nothing. */
const OPENS_NOTHING = /^(?:$|[,;>]|[^!-~])/;
/** A line that gives something a name, or takes the next one for its own, in reStructuredText, AsciiDoc and Org. */
const DEFINES = /^\s*(?:\.\.\s|:[\w!-]+:|#\+)/;

/**
 * The beginning of a line whose rest is the value of a name, as in YAML, in which it goes on behind a blank and on lines that are
 * indented; or blanks alone, as such a line has.
 */
const BEGINS_VALUE =
  /^[ \t]+$|^[\s*-]{0,20}["']?[^\s:=.!?"'][^:=.!?"'\n]{0,60}["']?\s?[:=]\s+(?:[>|][+-]?\d?\s*)?$/;
/** The same where it is between quotes, on whatever line. */
const NAMED_IN_QUOTES = /[:=]\s*["']{1,3}[^"']*$/;
/** The end of a line, behind a few marks. */
const LINE_ENDS = /^[)\]}(*_~.,;:!?|`'"’”“»›…]{0,4}[ \t]*\r?(?:\n|$)/;
const EMPTY_LINES = /^(?:[ \t]*\r?\n)+/;
/** How far behind an address is looked for whether it goes on there. */
const MAX_BELOW_CHARS = 500;

/** Where an address stands in a text. */
export interface Ends {
  at: number;
  end: number;
  is_json: boolean;
}

/**
 * Returns whether nothing is open before an address that could go on behind it: between quotes, in an attribute or as the
 * target of a picture a blank does not end it.
 */
export function isApart(text: string, { at, end, is_json }: Ends): boolean {
  const before = text.slice(Math.max(0, at - MAX_BEFORE_CHARS), at);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  const behind = text.slice(end, end + MAX_END_CHARS);
  if (DEFINES.test(line)) return false;
  if (is_json || isQuoted(before, behind)) return true;
  if (IN_TAG.test(before) && !before.endsWith("<")) return before.endsWith("=") && /^[\s>]/.test(behind);
  if (IN_QUOTES.test(line) || NAMED_IN_QUOTES.test(before)) return false;
  if (BEGINS_VALUE.test(line) && goesOn(text.slice(end, end + MAX_BELOW_CHARS))) return false;
  return BEHIND_TAG.test(before) ? /^\s{0,9}</.test(behind) : isClosed(line, behind);
}

/** Whether what begins with an address may go on behind it, or below it. */
function goesOn(behind: string): boolean {
  const ends = LINE_ENDS.exec(behind);
  return ends === null || /^[ \t]/.test(behind.slice(ends[0].length).replace(EMPTY_LINES, ""));
}

function isQuoted(before: string, behind: string): boolean {
  return /["']$/.test(before) && behind.startsWith(before.slice(-1));
}

/** Returns whether the mark at the end of a line opens nothing, or is closed right behind the address. */
function isClosed(line: string, behind: string): boolean {
  const last = line.slice(-1);
  const next = behind.slice(0, 1);
  if (SAME_MARK.test(last)) return next === last;
  // All of a line of data, such as the URL of an event.
  if (/[:=]/.test(last)) return /^[\w;-]+[:=]$/.test(line) && /^[\r\n]?$/.test(next);
  const closer = CLOSED_BY.get(last);
  return closer === undefined ? OPENS_NOTHING.test(last) : next === closer;
}

/**
 * Returns the marks behind an address that ends here for every program; undefined where it does not. Some make a link of
 * all up to the next blank, so a letter behind a known address would make it another one of the same site, and could tell
 * something there.
 */
export function marksBehind(text: string, { at, end, is_json }: Ends): string | undefined {
  const behind = text.slice(end, end + MAX_END_CHARS);
  const marks = ENDS.exec(behind)?.[1];
  if (marks !== undefined || (is_json && ENDS_IN_JSON.test(behind))) return marks ?? "";
  const address = text.slice(at, end);
  // The words of a link in Markdown that are its address.
  if (text.startsWith(`](${address})`, end)) return "";
  const is_tag =
    ENDS_TAG.test(behind) && IN_TAG.test(`${text.slice(Math.max(0, at - MAX_BEFORE_CHARS), at)}a`);
  return is_tag ? "" : undefined;
}
