/** Returns whether a text has more than `limit` code points, which is how people count: an emoji is one character. */
export function isLongerThan(text: string, limit: number): boolean {
  if (text.length <= limit || text.length > 2 * limit) return text.length > limit;
  return Array.from(text).length > limit;
}

/**
 * Returns the first characters of a text, well-formed, as a new string: a slice would keep all of a long text in
 * memory.
 */
export function headOf(text: string, max_chars: number): string {
  return Buffer.from(text.slice(0, max_chars)).toString();
}
