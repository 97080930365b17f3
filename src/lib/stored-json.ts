/** Parses a JSON column; returns `instead` where a damaged disk has left no JSON in it, as one row must not hide all others. */
export function storedJson<T>(text: string, instead: T): T {
  try {
    return JSON.parse(text) as T;
  } catch (error) {
    if (error instanceof SyntaxError) return instead;
    throw error;
  }
}
