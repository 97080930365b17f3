import { hasMoreParts, isNestedDeeper } from "../../lib/json-depth.ts";
import { addressesIn } from "../guard/prose-addresses.ts";
import { TOO_MUCH, textsIn } from "../guard/packed/texts.ts";
import { findLink } from "./find-link.ts";
import { withHiddenShown } from "../own-words/hidden-characters.ts";

/** Nobody reads more before they say yes, and so much fits whole into a mail. */
export const MAX_SHOWN_CHARS = 10_000;
const MAX_PARTS = 200;
const MAX_DEPTH = 8;
/** Where a line is continued on the next one: mail programs and pages cut off, or let scroll, what is longer. */
export const LINE_CHARS = 72;
/** More blanks (four), or empty lines, in a row are counted: what stands behind them could be overlooked. */
const MAX_EMPTY_LINES = 2;
const LINE = "  │ ";
const CONTINUED = "  ┆ ";

/** The arguments of a call as people read them, or why they cannot: there is too much of them, or they are in letters for machines. */
export type ShownCall = { text: string } | { problem: "long" | "packed" };

/**
 * Returns the arguments of a call as people read them before they consent to it: each by its name, whole, the short ones first. What
 * programs take out of a text, as from base64, stands beside it, and before all the places that nobody has named. Nothing in a value
 * can look like another argument, or go unseen.
 */
export function shownArguments(args: Record<string, unknown>, unnamed: string[] = []): ShownCall {
  const text = JSON.stringify(args);
  if (text.length > MAX_SHOWN_CHARS || hasMoreParts(text, MAX_PARTS) || isNestedDeeper(text, MAX_DEPTH))
    return { problem: "long" };
  const values = partsOf(args, "");
  const unpacked = values.map(unpackedOf);
  if (unpacked.includes(null)) return { problem: "packed" };
  const parts = [...values, ...unpacked.flatMap((found) => found ?? [])].map(({ name, note, value }) => ({
    name: nameOf(name) + (note === undefined ? "" : ` ⟨${note}⟩`),
    lines: linesOf(value),
  }));
  const [short, long] = [parts.filter(isShort), parts.filter((part) => !isShort(part))];
  const shown = [
    ...unnamed.map((place) => `⟨not named⟩: ${linesOf(place).join(" ")}`),
    ...short.map(({ name, lines }) => `${name}: ${lines.join("")}`),
    ...long.map(({ name, lines }) => [`${name}:`, ...lines.flatMap((line) => wrapped(line))].join("\n")),
  ].join("\n");
  return shown.length > MAX_SHOWN_CHARS ? { problem: "long" } : { text: shown };
}

/** Letters that no person reads, in one piece, as in base64. Words of an address are in small letters. */
const FOR_MACHINES = /[A-Za-z0-9+/_=-]{80,}/g;
/** A row of fewer says nothing. */
const MIN_SIGNS = 16;
/** Lines of them are one piece. */
const LINE_OF_THEM = /([A-Za-z0-9+/_=-]{40})[ \t]?\r?\n(?=(?!--)[A-Za-z0-9+/_=-]{4})/g;
/** What no text has that people read. */
const UNREADABLE = /(?![\t\n\r])\p{Cc}|\uFFFD/u;

/** What programs take out of a value and nobody sees in it; null if there is something that cannot be shown. */
function unpackedOf({ name, value }: Part): Part[] | null {
  if (typeof value !== "string") return [];
  const seen = [value];
  const add = (text: string): void => {
    if (!seen.some((one) => one.includes(text))) seen.push(text);
  };
  for (const given of textsIn(value)) {
    if (given === TOO_MUCH) return null;
    add(String(given.value));
  }
  // What is unpacked may hold more of the kind, and is shorter.
  for (const text of seen)
    for (const piece of machinePiecesOf(text)) {
      const words = Buffer.from(piece, "base64").toString();
      if (UNREADABLE.test(words)) return null;
      add(words);
    }
  const found = seen.slice(1).filter((text) => !seen.some((one) => one !== text && one.includes(text)));
  const people = seen.flatMap(addressesIn).map(({ shown }) => shown);
  const hidden = people.filter((address) => !seen.some((text) => text.includes(address)));
  return [
    ...found.map((text): Part => ({ name, note: "unpacked", value: text })),
    ...[...new Set(hidden)].map((address): Part => ({ name, note: "an address in it", value: address })),
  ];
}

function machinePiecesOf(text: string): string[] {
  const pieces = text.replaceAll(LINE_OF_THEM, "$1").match(FOR_MACHINES) ?? [];
  return pieces.filter((piece) => /[A-Z]/.test(piece) && new Set(piece).size >= MIN_SIGNS);
}

interface Part {
  name: string;
  /** What is said behind its name. */
  note?: string;
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
export function plainName(name: string): string {
  return /^[\p{L}\p{N}_-]{1,64}$/u.test(name) ? name : JSON.stringify(name);
}

export function nameOf(path: string): string {
  return withHiddenShown(path).replaceAll("\n", " ");
}

function isShort({ name, lines }: { name: string; lines: string[] }): boolean {
  const [line = ""] = lines;
  return lines.length === 1 && name.length + line.length < LINE_CHARS;
}

export function linesOf(value: unknown): string[] {
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

/** A line in pieces that are no longer than a line may be: the first one behind `first`, the others behind `next`. */
export function wrapped(line: string, [first, next]: [string, string] = [LINE, CONTINUED]): string[] {
  const pieces: string[] = [];
  let rest = line;
  while (rest.length > LINE_CHARS) {
    const end = breakIn(rest);
    pieces.push(rest.slice(0, end));
    rest = rest.slice(end);
  }
  return [...pieces, rest].map((piece, index) => (index === 0 ? first : next) + piece);
}

/** Behind the last blank that fits, or within a word that is longer than a line, but never within a character. */
function breakIn(line: string): number {
  const blank = line.lastIndexOf(" ", LINE_CHARS - 1);
  if (blank > LINE_CHARS / 2) return blank + 1;
  const unit = line.charCodeAt(LINE_CHARS - 1);
  return unit >= 0xd800 && unit <= 0xdbff ? LINE_CHARS - 1 : LINE_CHARS;
}
