/** Counted in code points, as people count: an emoji is one character. */
export function isLongerThan(text: string, limit: number): boolean {
  if (text.length <= limit || text.length > 2 * limit) return text.length > limit;
  return Array.from(text).length > limit;
}
