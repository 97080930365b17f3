/** "Emailing: " or "Emailing - ". */
const LABEL = /^.{1,40}?(?:[:：]|\s[–-])\s/u;

/** Whether a subject is made of the names of the mail's files, as programs do that mail one. */
export function namesFiles(subject: string, filenames: readonly string[]): boolean {
  const names = filenames
    .flatMap((name) => [name, name.replace(/\.[^.]*$/, "")])
    .map(lettersOf)
    .filter((name) => name !== "")
    .sort((one, other) => other.length - one.length);
  return [subject, subject.replace(LABEL, "")].some((text) => {
    const letters = lettersOf(text);
    return letters !== "" && names.reduce((left, name) => left.replaceAll(name, ""), letters) === "";
  });
}

/** What gives words a meaning of their own: an address, a command, a flag. */
const MARKED = /[@/\\$#]|(?<![\p{L}\p{N}])(?:\+\p{L}|(?:--|[–—])\p{L})|\p{L}\.\p{L}/u;
/** The first of the signs that stand for the names; they mean nothing to anybody (Unicode §23.5). */
const FIRST_SIGN = 0xf0000;
/** Names are cut where a mail is read; so much of one is surely left, and is looked for. */
const LONG_NAME_CHARS = 150;
const MAX_PATH_CHARS = 1_000;
const SIGNS = /[\u{F0000}-\u{FFFFD}]/gu;

/** A text in which each name of a file is one sign without a meaning. */
export interface WithoutNames {
  text: string;
  /** Returns words of that text with the names in them again. */
  shown: (words: string) => string;
  /** Returns words of that text with blanks in place of the names. */
  blank: (words: string) => string;
}

/**
 * Takes the names of files out of a text. Mail programs, and programs that share something, write them into the mails that
 * they begin (`(See attached file: …)`), and whoever made a file has chosen its name: an address or a flag in it is
 * nobody's order. Of a name without its ending only one that could be an order is taken out.
 */
export function hideFileNames(text: string, filenames: readonly string[]): WithoutNames {
  const spans = namesIn(text, filenames);
  const used = new Set(text.match(SIGNS));
  const signs = new Map<string, string>();
  let hidden = "";
  let from = 0;
  let code = FIRST_SIGN;
  for (const { start, end } of spans) {
    while (used.has(String.fromCodePoint(code))) code += 1;
    const sign = String.fromCodePoint(code);
    signs.set(sign, text.slice(start, end));
    hidden += text.slice(from, start) + sign;
    from = end;
    code += 1;
  }
  const replaced = (words: string, by: (sign: string) => string): string =>
    signs.size === 0 ? words : words.replaceAll(SIGNS, by);
  return {
    text: hidden + text.slice(from),
    shown: (words) => replaced(words, (sign) => signs.get(sign) ?? sign),
    blank: (words) => replaced(words, (sign) => (signs.has(sign) ? " " : sign)),
  };
}

/** Returns a text with blanks in place of the names of files. */
export function withoutFileNames(text: string, filenames: readonly string[]): string {
  const hidden = hideFileNames(text, filenames);
  return hidden.blank(hidden.text);
}

/** Where names of files stand in a text, whatever stands between their letters, from the first on. */
function namesIn(text: string, filenames: readonly string[]): { start: number; end: number }[] {
  const names = filenames.flatMap((name) => {
    const stem = name.replace(/\.[^.]*$/, "");
    const isTelling = stem !== name || /\S\s+\S/.test(name) || MARKED.test(name);
    return [...(isTelling ? [name] : []), ...(MARKED.test(stem) && /\S\s+\S/.test(stem) ? [stem] : [])];
  });
  if (names.length === 0) return [];
  const wanted = [...new Set(names.map((name) => placed(name.slice(0, LONG_NAME_CHARS)).letters))];
  const { letters, places } = placed(text);
  const found = wanted
    .filter((name) => name !== "")
    .flatMap((name) => occurrences(letters, name).map((at) => [at, at + name.length - 1]));
  const isLong = filenames.some((name) => name.length >= LONG_NAME_CHARS);
  const spans = found
    .map(([first = 0, last = 0]) => ({ start: places[first] ?? 0, end: (places[last] ?? 0) + 1 }))
    .filter(
      ({ start, end }) => !isWordChar(text.charAt(start - 1)) && (isLong || !isWordChar(text.charAt(end))),
    )
    .map(({ start, end }) => ({ start: pathStart(text, start), end: isLong ? paragraphEnd(text, end) : end }))
    .toSorted((one, other) => one.start - other.start || other.end - one.end);
  const apart: typeof spans = [];
  for (const span of spans) {
    const before = apart.at(-1);
    if (before && span.start < before.end) before.end = Math.max(before.end, span.end);
    else apart.push({ ...span });
  }
  return apart;
}

/** A file's name is its last step alone: what stands before that in the text is its maker's too. */
function pathStart(text: string, start: number): number {
  if (!/[/\\]/.test(text.charAt(start - 1))) return start;
  const least = Math.max(0, start - MAX_PATH_CHARS);
  let at = start;
  while (at > least && !/["'<(:\n]/.test(text.charAt(at - 1))) at -= 1;
  return at;
}

/** A long name may have been cut where the mail was read. */
function paragraphEnd(text: string, from: number): number {
  const end = text.indexOf("\n\n", from);
  return end === -1 ? text.length : end;
}

function occurrences(text: string, wanted: string): number[] {
  const found: number[] = [];
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + wanted.length))
    found.push(at);
  return found;
}

/** The letters of a text as `lettersOf` has them, without accents and in their plainest form, and where each stands. */
function placed(text: string): { letters: string; places: number[] } {
  let letters = "";
  const places: number[] = [];
  for (const { 0: char, index } of text.matchAll(/[\p{L}\p{N}]/gu)) {
    const plain = char.charCodeAt(0) < 0x80 ? char.toLowerCase() : lettersOf(char.normalize("NFKD"));
    letters += plain;
    for (let unit = 0; unit < plain.length; unit += 1) places.push(index);
  }
  return { letters, places };
}

function isWordChar(char: string): boolean {
  return /[\p{L}\p{N}]/u.test(char);
}

/** Returns the letters and numbers of a text in small letters, by which texts are compared. */
export function lettersOf(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}
