let known = Number.NaN;

/** Bytes of memory that this process has; to look takes a file handle, and without one the last figure stands, NaN if there is none. */
export function residentBytes(): number {
  try {
    known = process.memoryUsage.rss();
  } catch {
    // Whoever asks only guards against much more than before.
  }
  return known;
}
