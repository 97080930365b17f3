/**
 * Limit of the parts (see `hasMoreParts`) in one JSON text from outside: far more than honest answers have, and parsed
 * in a few milliseconds.
 */
export const MAX_PARTS = 50_000;
/** Limit of the nesting levels in it: more than honest answers and the schemas of tools have. */
export const MAX_DEPTH = 200;

/**
 * Thrown for JSON from outside that would block the event loop if it were parsed. The message says which limit it
 * exceeds.
 */
export class JsonExcess extends Error {
  constructor(message: string) {
    super(message);
    this.name = "JsonExcess";
  }
}

/**
 * Parses JSON from outside, whose size the caller has limited. Throws JsonExcess, or SyntaxError where it is not JSON.
 */
export function parseForeign(text: string, max_parts: number = MAX_PARTS): unknown {
  if (hasMoreParts(text, max_parts))
    throw new JsonExcess(`more than ${max_parts.toLocaleString("en")} parts`);
  if (isNestedDeeper(text, MAX_DEPTH)) throw new JsonExcess(`more than ${MAX_DEPTH} levels`);
  return JSON.parse(text);
}

/** Returns a phrase for why `parseForeign` threw, to complete "the server answered with …". */
export function whyNotParsed(text: string, error: unknown): string {
  if (error instanceof JsonExcess) return error.message;
  return /^\s*</.test(text) ? "a web page" : "something else than JSON";
}

/** Returns whether a text exceeds the limits of `parseForeign`; for texts that another library parses. */
export function exceedsJsonLimits(text: string): boolean {
  return hasMoreParts(text, MAX_PARTS) || isNestedDeeper(text, MAX_DEPTH);
}

/**
 * Checks the same limits in JSON that arrives in chunks of bytes. A JSON string holds no line break, so each line
 * begins outside of strings.
 */
export class JsonMeter {
  parts = 0;
  depth = 0;
  deepest = 0;
  in_string = false;
  escaped = false;

  /** Counts one more chunk. Returns whether the text exceeds a limit by now. */
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
/** What each byte adds to the number of parts and of levels. */
const PARTS = byteTable({ '"': 1, ",": 1, "[": 1, "]": 1, "{": 1, "}": 1 });
const LEVELS = byteTable({ "[": 1, "]": -1, "{": 1, "}": -1 });
const ENDS_LINE = byteTable({ "\n": 1, "\r": 1 });

function byteTable(values: Record<string, number>): Int8Array {
  const table = new Int8Array(256);
  for (const [char, value] of Object.entries(values)) table[char.charCodeAt(0)] = value;
  return table;
}

/**
 * Returns whether lists and objects in a JSON text are nested more than `limit` deep. Scans the text without parsing
 * it, so that a hostile one costs linear time; for text that is not JSON the answer may be either.
 */
export function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  return someMark(text, /["[\]{}]/g, (char) => {
    if (char !== '"') depth += char === "[" || char === "{" ? 1 : -1;
    return depth > limit;
  });
}

/**
 * Returns whether a JSON text has more than `limit` parts: each string, comma, bracket and brace counts as one. Scans
 * without parsing; for text that is not JSON the answer may be either.
 */
export function hasMoreParts(text: string, limit: number): boolean {
  return partsIn(text, limit) > limit;
}

/** Returns how many parts a JSON text has. Stops counting soon after `limit`. */
export function partsIn(text: string, limit: number): number {
  let parts = 0;
  someMark(text, /["[\]{},]/g, () => {
    parts += 1;
    return parts > limit;
  });
  return parts;
}

/**
 * Returns whether `fits` holds for any match of `mark` outside of strings. `mark` has to match the quote that begins a
 * string.
 */
function someMark(text: string, mark: RegExp, fits: (char: string) => boolean): boolean {
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    const [char] = found;
    if (char === '"') mark.lastIndex = endOfString(text, found.index);
    if (fits(char)) return true;
  }
  return false;
}

/** Returns the index after the quote that ends the string beginning at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text[end - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return end + 1;
  }
  return text.length;
}
