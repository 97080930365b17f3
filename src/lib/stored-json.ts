/**
 * Parses a JSON column. Returns `instead` where a damaged disk has left no valid JSON, so that one row does not make a
 * whole list fail.
 */
export function storedJson<T>(text: string, instead: T): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    if (error instanceof SyntaxError) return instead;
    throw error;
  }
}
