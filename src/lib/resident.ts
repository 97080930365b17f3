let known = Number.NaN;

/**
 * Returns the resident memory of this process in bytes. Reading it needs a file handle: without one, returns the last
 * figure, or NaN if there is none.
 */
export function residentBytes(): number {
  try {
    known = process.memoryUsage.rss();
  } catch {
    // An old figure is good enough: callers only guard against a large growth.
  }
  return known;
}
