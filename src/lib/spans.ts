/** A contiguous range of bytes. */
interface Span {
  offset: number;
  size: number;
}

/**
 * Returns the parts of `spans` that none of `others` covers, in order. `others` must be sorted by offset, and may
 * overlap.
 */
export function subtractSpans(spans: Span[], others: Span[]): Span[] {
  const left: Span[] = [];
  let at = 0;
  let next = 0;
  for (const { offset, size } of spans.toSorted((one, other) => one.offset - other.offset)) {
    const end = offset + size;
    at = Math.max(at, offset);
    while (at < end) {
      const other = others[next] ?? { offset: end, size: 0 };
      const free_until = Math.min(end, other.offset);
      if (free_until > at) left.push({ offset: at, size: free_until - at });
      at = Math.max(at, Math.min(end, other.offset + other.size));
      if (at < end) next += 1;
    }
  }
  return left;
}
