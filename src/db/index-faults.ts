/** What `pragma integrity_check` says of a row that an index does not lead to. */
const MISSING = /^row \d+ (?:missing from|values differ from) index (\S+)$/;
/** What it says besides of such an index. */
const OF_INDEX = /^(?:wrong # of entries|non-unique entry) in index (\S+)$/;
/** What it says of the page on which entries were lost, which may be one of a table as well. */
const OF_PAGE = /^(?:\*\*\* in database|Fragmentation of |(?:Tree \d+ page \d+: )Fragmentation of )/;

/**
 * Returns the indexes that do not lead to all rows of their tables; undefined where something else is damaged as well. An
 * index that has more than its table is none of them: rows may be lost.
 */
export function damagedIndexes(faults: string[]): string[] | undefined {
  const lines = faults.flatMap((fault) => fault.split("\n")).filter((line) => !OF_PAGE.test(line));
  const found = new Set(lines.flatMap((line) => MISSING.exec(line)?.[1] ?? []));
  const is_all = lines.every((line) => found.has((MISSING.exec(line) ?? OF_INDEX.exec(line))?.[1] ?? ""));
  return is_all && found.size > 0 ? [...found] : undefined;
}
