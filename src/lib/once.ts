/** Returns a function that calls `make` the first time it is called, and returns what that made ever after. */
export function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
