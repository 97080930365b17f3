import { hasMoreParts, isNestedDeeper } from "../../lib/json-depth.ts";
import { findLink } from "./find-link.ts";
import { withHiddenShown } from "../own-words/hidden-characters.ts";

/** Nobody reads more before they say yes, and so much fits whole into a mail. */
const MAX_SHOWN_CHARS = 10_000;
const MAX_PARTS = 200;
const MAX_DEPTH = 8;
/** Where a line is continued on the next one: mail programs and pages cut off, or let scroll, what is longer. */
const LINE_CHARS = 72;
/** More blanks (four), or empty lines, in a row are counted: what stands behind them could be overlooked. */
const MAX_EMPTY_LINES = 2;
const LINE = "  │ ";
const CONTINUED = "  ┆ ";

/**
 * Returns the arguments of a call as people read them before they consent to it: each by its name, whole, the short ones first; null
 * where they are too many or too long to be read. Nothing in a value can look like another argument, or go unseen.
 */
export function shownArguments(args: Record<string, unknown>): string | null {
  const text = JSON.stringify(args);
  if (text.length > MAX_SHOWN_CHARS || hasMoreParts(text, MAX_PARTS) || isNestedDeeper(text, MAX_DEPTH))
    return null;
  const parts = partsOf(args, "").map(({ name, value }) => ({ name: nameOf(name), lines: linesOf(value) }));
  const [short, long] = [parts.filter(isShort), parts.filter((part) => !isShort(part))];
  const shown = [
    ...short.map(({ name, lines }) => `${name}: ${lines.join("")}`),
    ...long.map(({ name, lines }) => [`${name}:`, ...lines.flatMap(wrapped)].join("\n")),
  ].join("\n");
  return shown.length > MAX_SHOWN_CHARS ? null : shown;
}

interface Part {
  name: string;
  value: unknown;
}

/** The values of an argument, by their way to it: `attendees[1].email`. An empty list or object is a value. */
function partsOf(value: unknown, path: string): Part[] {
  if (typeof value !== "object" || value === null) return [{ name: path, value }];
  const entries = Array.isArray(value)
    ? value.map((item, index): [string, unknown] => [`${path}[${index + 1}]`, item])
    : Object.entries(value).map(([name, item]): [string, unknown] => [
        path === "" ? plainName(name) : `${path}.${plainName(name)}`,
        item,
      ]);
  if (entries.length === 0 && path !== "") return [{ name: path, value: undefined }];
  return entries.flatMap(([name, item]) => partsOf(item, name));
}

/** A name that could be read as more than a name is shown as JSON. */
function plainName(name: string): string {
  return /^[\p{L}\p{N}_-]{1,64}$/u.test(name) ? name : JSON.stringify(name);
}

function nameOf(path: string): string {
  return withHiddenShown(path).replaceAll("\n", " ");
}

function isShort({ name, lines }: { name: string; lines: string[] }): boolean {
  const [line = ""] = lines;
  return lines.length === 1 && name.length + line.length < LINE_CHARS;
}

function linesOf(value: unknown): string[] {
  if (value === "" || value === undefined) return ["⟨empty⟩"];
  if (value === null) return ["⟨none⟩"];
  if (typeof value !== "string") return [JSON.stringify(value)];
  const lines = withHiddenShown(value).split("\n");
  return withoutEmptyRuns(lines.map((line) => unlinked(withoutBlankRuns(line))));
}

/** The address of a person, as it stands; a longer one may be made to tell something. */
const PERSON = /^[\w.+-]{1,16}@[\w-]+\.[a-z]{2,16}$/i;

/**
 * A line in which no program makes a link of an address: it may hold what the model knows, and whoever reads it should not tell that
 * to a site by a click.
 */
function unlinked(line: string): string {
  let shown = "";
  let at = 0;
  for (let link = findLink(line, at); link; link = findLink(line, at)) {
    const address = line.slice(link.start, link.end);
    shown +=
      line.slice(at, link.start) +
      (PERSON.test(address) ? address : address.replaceAll(/[.:@]|\/\//g, "⟨$&⟩"));
    at = link.end;
  }
  return shown + line.slice(at);
}

function withoutBlankRuns(line: string): string {
  return line.replaceAll(/ {5,}/g, ({ length }) => ` ⟨${length} blanks⟩ `).trimEnd();
}

function withoutEmptyRuns(lines: string[]): string[] {
  const kept: string[] = [];
  let empty = 0;
  const settle = (): void => {
    if (empty > MAX_EMPTY_LINES) kept.push(`⟨${empty} empty lines⟩`);
    else for (let count = 0; count < empty; count += 1) kept.push("");
    empty = 0;
  };
  for (const line of lines) {
    if (line.trim() === "") {
      empty += 1;
      continue;
    }
    settle();
    kept.push(line);
  }
  settle();
  return kept;
}

function wrapped(line: string): string[] {
  const pieces: string[] = [];
  let rest = line;
  while (rest.length > LINE_CHARS) {
    const end = breakIn(rest);
    pieces.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  return [...pieces, rest].map((piece, index) => (index === 0 ? LINE : CONTINUED) + piece);
}

/** Behind the last blank that fits, or within a word that is longer than a line, but never within a character. */
function breakIn(line: string): number {
  const blank = line.lastIndexOf(" ", LINE_CHARS - 1);
  if (blank > LINE_CHARS / 2) return blank + 1;
  const unit = line.charCodeAt(LINE_CHARS - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? LINE_CHARS - 1 : LINE_CHARS;
}
