/**
 * Returns a lower bound of the ids (UUIDv7) made in this unix second or later: their first 48 bits are milliseconds
 * (RFC 9562 §5.7).
 */
export function firstIdAt(second: number): string {
  const hex = (second * 1_000).toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

/** Returns when an id was made, in milliseconds since the epoch. */
export function millisecondsOf(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
