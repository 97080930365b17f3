/**
 * Whether lists and objects in a JSON text lie within each other more than `limit` deep. Told from the text, so
 * that a hostile one is never built; nonsense may get either answer. So does the next one.
 */
export function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  for (const char of marksOf(text, /["[\]{}]/g)) {
    if (char === '"') continue;
    depth += char === "[" || char === "{" ? 1 : -1;
    if (depth > limit) return true;
  }
  return false;
}

/** Whether a JSON text has more than `limit` parts: each string and each comma, bracket or brace counts as one. */
export function hasMoreParts(text: string, limit: number): boolean {
  let parts = 0;
  for (const _part of marksOf(text, /["[\]{},]/g)) {
    parts += 1;
    if (parts > limit) return true;
  }
  return false;
}

/** What `mark` finds outside of strings, of which the first quote is found. */
function* marksOf(text: string, mark: RegExp): Generator<string> {
  for (let found = mark.exec(text); found !== null; found = mark.exec(text)) {
    const [char] = found;
    if (char === '"') mark.lastIndex = endOfString(text, found.index);
    yield char;
  }
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
