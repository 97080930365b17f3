/** Returns the length of a text in code points, as people count: an emoji is one character. */
export function isLongerThan(text: string, limit: number): boolean {
  if (text.length <= limit || text.length > 2 * limit) return text.length > limit;
  return Array.from(text).length > limit;
}

/** The first characters of a text, well-formed, as a string of their own: a slice would keep all of a long text in memory. */
export function headOf(text: string, max_chars: number): string {
  return Buffer.from(text.slice(0, max_chars)).toString();
}
