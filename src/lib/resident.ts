let known = Number.NaN;

/**
 * Bytes of memory that this process has. Looking needs a file handle: without one the last figure is returned, or NaN
 * if there is none.
 */
export function residentBytes(): number {
  try {
    known = process.memoryUsage.rss();
  } catch {
    // Whoever asks only guards against much more than before.
  }
  return known;
}
