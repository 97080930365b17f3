/** Limit of the parts in one JSON text of others: far more than honest answers have, and built in a few milliseconds. */
export const MAX_PARTS = 50_000;
/** Limit of the levels in it: more than honest answers and the schemas of tools have. */
export const MAX_DEPTH = 200;

/** Thrown for JSON of others that would hold up everybody if it were built. The message says of what it has too much. */
export class JsonExcess extends Error {
  constructor(message: string) {
    super(message);
    this.name = "JsonExcess";
  }
}

/** Parses JSON that others wrote, whose size the caller has bounded. Throws JsonExcess, or SyntaxError for no JSON. */
export function parseForeign(text: string, max_parts: number = MAX_PARTS): unknown {
  if (hasMoreParts(text, max_parts))
    throw new JsonExcess(`more than ${max_parts.toLocaleString("en")} parts`);
  if (isNestedDeeper(text, MAX_DEPTH)) throw new JsonExcess(`more than ${MAX_DEPTH} levels`);
  return JSON.parse(text);
}

/** Says in words why `parseForeign` did not take a text. */
export function whyUnread(text: string, error: unknown): string {
  if (error instanceof JsonExcess) return error.message;
  return /^\s*</.test(text) ? "a web page" : "something else than JSON";
}

/** Throws JsonExcess for a text beyond the same bounds, which another library is to parse. */
export function isTooMuch(text: string): boolean {
  return hasMoreParts(text, MAX_PARTS) || isNestedDeeper(text, MAX_DEPTH);
}

/** Finds the same excess in JSON that comes in pieces of bytes. No string holds a line break, so each line begins outside of one. */
export class JsonMeter {
  parts = 0;
  depth = 0;
  deepest = 0;
  in_string = false;
  escaped = false;

  /** Whether it is too much. */
  take(piece: Uint8Array): boolean {
    let { parts, depth, deepest, in_string, escaped } = this;
    for (let at = 0; at < piece.length; at += 1) {
      const byte = piece[at] ?? 0;
      if (in_string) {
        in_string = (escaped || byte !== QUOTE) && ENDS_LINE[byte] === 0;
        escaped = in_string && !escaped && byte === BACKSLASH;
      } else {
        parts += PARTS[byte] ?? 0;
        depth += LEVELS[byte] ?? 0;
        deepest = Math.max(deepest, depth);
        in_string = byte === QUOTE;
      }
    }
    Object.assign(this, { parts, depth, deepest, in_string, escaped });
    return parts > MAX_PARTS || deepest > MAX_DEPTH;
  }
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** What each byte adds. */
const PARTS = byteTable({ '"': 1, ",": 1, "[": 1, "]": 1, "{": 1, "}": 1 });
const LEVELS = byteTable({ "[": 1, "]": -1, "{": 1, "}": -1 });
const ENDS_LINE = byteTable({ "\n": 1, "\r": 1 });

function byteTable(values: Record<string, number>): Int8Array {
  const table = new Int8Array(256);
  for (const [char, value] of Object.entries(values)) table[char.charCodeAt(0)] = value;
  return table;
}

/**
 * Whether lists and objects in a JSON text lie within each other more than `limit` deep. Told from the text, so
 * that a hostile one is never built; nonsense may get either answer. So does the next one.
 */
export function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  return someMark(text, /["[\]{}]/g, (char) => {
    if (char !== '"') depth += char === "[" || char === "{" ? 1 : -1;
    return depth > limit;
  });
}

/** Whether a JSON text has more than `limit` parts: each string and each comma, bracket or brace counts as one. */
export function hasMoreParts(text: string, limit: number): boolean {
  return partsIn(text, limit) > limit;
}

/** How many parts a JSON text has; where there are more than `limit`, they are not counted further. */
export function partsIn(text: string, limit: number): number {
  let parts = 0;
  someMark(text, /["[\]{},]/g, () => {
    parts += 1;
    return parts > limit;
  });
  return parts;
}

/** Whether `fits` holds for anything that `mark` finds outside of strings, of which the first quote is found. */
function someMark(text: string, mark: RegExp, fits: (char: string) => boolean): boolean {
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    const [char] = found;
    if (char === '"') mark.lastIndex = endOfString(text, found.index);
    if (fits(char)) return true;
  }
  return false;
}

/** Index after the quote that ends the string which begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}
