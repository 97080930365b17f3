/** Characters that give words a meaning: an address, a command, a flag, a title in quotation marks. */
const MARKED = /[@/\\$#"“”„«»「」『』]|(?<![\p{L}\p{N}])(?:\+\p{L}|(?:--|[–—])\p{L})|\p{L}\.\p{L}/u;
/** File names are cut when a mail is read; at least this much of a long one is left to search for. */
const LONG_NAME_CHARS = 150;
const MAX_PATH_CHARS = 1_000;
/** How programs abbreviate a name. */
const LEFT_OUT = /…|⋯|‥|\.{2}/;
/**
 * How many places with abbreviations a name is compared with; beyond them all text around such a place counts as a
 * name.
 */
const MAX_COMPARISONS = 500;
/** How many letters of names are compared with a text; where they are more, the whole text counts as names. */
const MAX_STEPS = 200_000;
/** The number of a copied file: "Offer (1).pdf". */
const COPY_NUMBER = /(?:[([]\d{1,3}[)\]]|[\s_-]\d{1,3})$/;
const MAX_COPY_DIGITS = 3;
/** Letters of scripts without spaces or, as Korean, with particles attached to words. */
const UNPARTED =
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]/u;

export interface Span {
  start: number;
  end: number;
}

/**
 * Returns whether a name that others chose could be a command, or name something, if it were part of an instruction.
 */
export function mayCommand(words: string): boolean {
  return MARKED.test(words);
}

/**
 * Returns where file names occur in a text, whatever separates their letters, in order: whole, with the number of a
 * copy, or abbreviated.
 */
export function namesIn(text: string, filenames: readonly string[]): Span[] {
  const read = readLetters(text);
  if (read.letters === "") return [];
  const names = [...new Set(filenames)].map(nameOf);
  const is_long = filenames.some((name) => name.length >= LONG_NAME_CHARS);
  const whole = occurrences(read, patternsOf(names), is_long);
  if (whole === undefined) return [{ start: 0, end: text.length }];
  const spans = withPaths(text, whole);
  return apart([...(is_long ? toParagraphEnds(text, spans) : spans), ...shortenedIn(read, names)]);
}

interface Name {
  filename: string;
  /** Its letters without the extension, and the extension's; both empty without one. A long name is looked for without. */
  stem: string;
  ending: string;
  /** Letter sequences that count as its name wherever they occur. */
  wanted: string[];
}

function nameOf(filename: string): Name {
  const stem = filename.replace(/\.[^.]*$/, "");
  const ending = filename.slice(stem.length);
  const original = stem.replace(COPY_NUMBER, "");
  const is_telling = ending !== "" || /\S\s+\S/.test(filename) || MARKED.test(filename);
  const wanted = [
    ...(is_telling ? [filename] : []),
    ...(ending !== "" && original !== stem ? [original + ending] : []),
    ...[stem, original].filter((one) => MARKED.test(one) && /\S\s+\S/.test(one)),
  ];
  return {
    filename,
    stem: ending === "" || original.length > LONG_NAME_CHARS ? "" : lettersIn(original),
    ending: lettersIn(ending.slice(0, LONG_NAME_CHARS)),
    wanted: wanted.map((name) => lettersIn(name.slice(0, LONG_NAME_CHARS))).filter((name) => name !== ""),
  };
}

/** The letters of a text as `lettersIn` returns them. */
interface Letters {
  text: string;
  letters: string;
  /** The position of each letter. */
  places: number[];
}

function readLetters(text: string): Letters {
  let letters = "";
  const places: number[] = [];
  let index = 0;
  for (const char of text) {
    const plain = plainOf(char);
    letters += plain;
    for (let unit = 0; unit < plain.length; unit += 1) places.push(index);
    index += char.length;
  }
  return { text, letters, places };
}

/** The plain form of each character that was met, because most stand in many names. */
const PLAIN = new Map<string, string>();
const MAX_PLAIN = 5_000;

/** Returns a letter or number without accents and in its plain form, and nothing for other characters. */
function plainOf(char: string): string {
  if (char.charCodeAt(0) < 0x80) return isWordChar(char) ? char.toLowerCase() : "";
  const known = PLAIN.get(char);
  if (known !== undefined) return known;
  const letters = isWordChar(char) ? normalForm("NFKD", char).replaceAll(/[^\p{L}\p{N}]+/gu, "") : "";
  const plain = letters.toLowerCase();
  if (PLAIN.size === MAX_PLAIN) PLAIN.clear();
  PLAIN.set(char, plain);
  return plain;
}

/** Returns the letters and numbers of a text, without accents and in their plain form. */
function lettersIn(text: string): string {
  return readLetters(text).letters;
}

function spanOf({ text, places }: Letters, from: number, to: number): Span {
  const last = places[to - 1] ?? 0;
  return { start: places[from] ?? 0, end: last + String.fromCodePoint(text.codePointAt(last) ?? 0).length };
}

/** Stands for the number of a copy, before all letters. */
const COPY = "\u0001";

/** Returns the letter sequences to look for, in order, so that a text is looked through once, however many they are. */
function patternsOf(names: Name[]): string[] {
  const patterns = names.flatMap(({ wanted, stem, ending }) => [
    ...wanted,
    ...(stem === "" ? [] : [stem + COPY + ending]),
  ]);
  return [...new Set(patterns)].sort();
}

/** The patterns from one index to another, which have so many letters in common. */
interface Range {
  from: number;
  to: number;
  depth: number;
}

/** Returns those patterns of a range that go on with a letter. */
function goingOn(patterns: string[], { from, to, depth }: Range, letter: string): Range {
  const code = letter.charCodeAt(0);
  // A pattern that ends here is before those that go on.
  const codeOf = (index: number): number => patterns[index]?.charCodeAt(depth) || -1;
  const isBetween = codeOf(from) <= code && code <= codeOf(to - 1);
  if (!isBetween) return { from, to: from, depth };
  const first = (isThere: (other: number) => boolean): number => {
    let [low, high] = [from, to];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isThere(codeOf(middle))) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return {
    from: codeOf(from) === code ? from : first((other) => other >= code),
    to: codeOf(to - 1) === code ? to : first((other) => other > code),
    depth: depth + 1,
  };
}

/** Returns the longest name that begins at each place; undefined where names and text are made to take long. */
function occurrences(read: Letters, patterns: string[], is_long: boolean): Span[] | undefined {
  const { text, letters, places } = read;
  const found: Span[] = [];
  let steps = 0;
  const endsFrom = (at: number, begun: Range): number[] => {
    const ends: number[] = [];
    let end = at;
    for (let range = begun; range.from < range.to; range = goingOn(patterns, range, letters.charAt(end++))) {
      steps += 1;
      if (patterns[range.from]?.length === range.depth) ends.push(end);
      const copies = goingOn(patterns, range, COPY);
      if (copies.from === copies.to) continue;
      const digits = /^\d*/.exec(letters.slice(end, end + MAX_COPY_DIGITS))?.[0].length ?? 0;
      if (digits > 0) ends.push(...endsFrom(end + digits, copies));
    }
    return ends;
  };
  for (const [at, place] of places.entries()) {
    if (!isParted(text, place)) continue;
    const ends = endsFrom(at, { from: 0, to: patterns.length, depth: 0 })
      .map((to) => spanOf(read, at, to).end)
      .filter((end) => is_long || isParted(text, end));
    if (ends.length > 0) found.push({ start: place, end: Math.max(...ends) });
    if (steps > MAX_STEPS) return undefined;
  }
  return found;
}

/**
 * Returns where a program has abbreviated a name, if the rest could be a command, or ends like the name. The author's
 * own words may also begin like a file name and end in three dots.
 */
function shortenedIn(read: Letters, names: Name[]): Span[] {
  if (!LEFT_OUT.test(read.text)) return [];
  const cuts = cutsIn(read);
  if (cuts.length * names.length > MAX_COMPARISONS)
    return cuts.map((at) =>
      spanOf(read, Math.max(0, at - LONG_NAME_CHARS), Math.min(read.letters.length, at + LONG_NAME_CHARS)),
    );
  return cuts.flatMap((at) => names.flatMap((name) => shortenedAt(read, at, name)));
}

/** Returns how many letters precede each abbreviation. */
function cutsIn({ text, places }: Letters): number[] {
  const cuts: number[] = [];
  for (let at = 0; at <= places.length; at += 1) {
    const from = places[at - 1] ?? 0;
    const to = places[at] ?? text.length;
    if (to - from > 1 && LEFT_OUT.test(text.slice(from, to))) cuts.push(at);
  }
  return cuts;
}

function shortenedAt(read: Letters, at: number, { filename, ending }: Name): Span[] {
  const letters = lettersIn(filename);
  const head = longest(letters, (length) => beginsAt(read, at - length, letters.slice(0, length)));
  const stem = letters.slice(0, letters.length - ending.length);
  const [whole = 0, bare = 0] = [letters, stem].map((name) =>
    longest(name, (length) => endsAt(read, at + length, name.slice(-length))),
  );
  const tail = Math.max(whole, bare);
  if (head + tail === 0) return [];
  const span = spanOf(read, at - head, at + tail);
  const ends = head > 0 && ending !== "" && whole >= ending.length;
  return ends || MARKED.test(read.text.slice(span.start, span.end)) ? [span] : [];
}

/** Returns the largest number of a name's letters for which `stands` holds; 0 if none. */
function longest(name: string, stands: (length: number) => boolean): number {
  for (let length = Math.min(LONG_NAME_CHARS, name.length); length > 0; length -= 1)
    if (stands(length)) return length;
  return 0;
}

function beginsAt({ text, letters, places }: Letters, at: number, wanted: string): boolean {
  return at >= 0 && letters.startsWith(wanted, at) && isParted(text, places[at] ?? 0);
}

function endsAt(read: Letters, end: number, wanted: string): boolean {
  const at = end - wanted.length;
  return read.letters.startsWith(wanted, at) && isParted(read.text, spanOf(read, at, end).end);
}

/** Returns whether a word may begin or end at this position. */
function isParted(text: string, at: number): boolean {
  const [before, behind] = [text.charAt(at - 1), text.charAt(at)];
  if (!isWordChar(before) || !isWordChar(behind)) return true;
  return isUnparted(before) || isUnparted(behind);
}

/** Returns whether a letter is of a script in which words have no spaces between them. */
export function isUnparted(char: string): boolean {
  return UNPARTED.test(char);
}

function isWordChar(char: string): boolean {
  const code = char.charCodeAt(0);
  // Most text is ASCII, and the pattern would take most of the time.
  if (code < 0x80)
    return (code >= 0x30 && code <= 0x39) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
  return /[\p{L}\p{N}]/u.test(char);
}

/** Returns names together with the path before them: whoever made the file chose that as well. */
function withPaths(text: string, spans: Span[]): Span[] {
  let [from, at] = [0, 0];
  return spans.map(({ start, end }) => {
    // What ends a path is looked for once, as the names are in order.
    for (; at < start; at += 1) if (/["'<(:\n]/.test(text.charAt(at))) from = at + 1;
    const is_path = /[/\\]/.test(text.charAt(start - 1));
    return { start: is_path ? Math.max(from, start - MAX_PATH_CHARS) : start, end };
  });
}

/** Returns spans up to the end of their paragraph: a long name may have been cut when the mail was read. */
function toParagraphEnds(text: string, spans: Span[]): Span[] {
  let until = -1;
  return spans.map(({ start, end }) => {
    // Whatever ends before that is in the paragraph of one that began before it.
    if (end > until) {
      const at = text.indexOf("\n\n", end);
      until = at === -1 ? text.length : at;
    }
    return { start, end: until };
  });
}

function apart(spans: Span[]): Span[] {
  const found: Span[] = [];
  for (const span of spans.toSorted((one, other) => one.start - other.start || other.end - one.end)) {
    const before = found.at(-1);
    if (before && span.start < before.end) before.end = Math.max(before.end, span.end);
    else found.push({ ...span });
  }
  return found;
}
import { normalForm } from "../../lib/normal-form.ts";
