/**
 * The entries of a first page that came after those that are known. What stands behind the last known one is older: it
 * has only moved up, because something before it was deleted.
 */
export function newsIn<T>(head: T[], known: ReadonlySet<string>, versionOf: (item: T) => string): T[] {
  const last = head.findLastIndex((item) => known.has(versionOf(item)));
  const newer = last === -1 ? head : head.slice(0, last);
  return newer.filter((item) => !known.has(versionOf(item)));
}
