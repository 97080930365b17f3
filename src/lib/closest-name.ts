/**
 * Returns the known name with the smallest edit distance to `name`, if that is small enough for a typing error;
 * otherwise undefined.
 */
export function closestName(name: string, names: string[]): string | undefined {
  const ranked = names
    .map((known) => ({ known, edits: editsBetween(name, known) }))
    .sort((a, b) => a.edits - b.edits);
  const best = ranked[0];
  if (best === undefined || best.edits > Math.max(2, Math.floor(best.known.length / 4))) return undefined;
  // At least half of the name has to be right: two edits can turn three letters into anything.
  return 2 * best.edits <= Math.max(name.length, best.known.length) ? best.known : undefined;
}

/**
 * Returns the known names most similar to `name`, the nearest first. Names with the same beginning come before others.
 */
export function nearestNames(name: string, names: string[], count: number): string[] {
  const wanted = name.toLowerCase();
  return names
    .map((known) => ({ known, begins: sharedStart(wanted, known.toLowerCase()) }))
    .map(({ known, begins }) => ({ known, distance: editsBetween(wanted, known.toLowerCase()) - 2 * begins }))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, count)
    .map(({ known }) => known);
}

function sharedStart(a: string, b: string): number {
  let length = 0;
  while (length < Math.min(a.length, b.length) && a[length] === b[length]) length += 1;
  return length;
}

const MAX_COMPARED_CHARS = 100;

/** One row of distances for each letter, used again for each pair: others may name thousands. */
const row = new Uint8Array(MAX_COMPARED_CHARS + 1);

/** Levenshtein distance of the first 100 characters: of long texts it would take long. */
function editsBetween(a: string, b: string): number {
  const [rows, columns] = [a, b].map(({ length }) => Math.min(length, MAX_COMPARED_CHARS)) as [
    number,
    number,
  ];
  for (let j = 0; j <= columns; j += 1) row[j] = j;
  for (let i = 0; i < rows; i += 1) {
    let corner = i;
    let left = i + 1;
    row[0] = left;
    for (let j = 0; j < columns; j += 1) {
      const above = row[j + 1] ?? 0;
      const swap = corner + (a.charCodeAt(i) === b.charCodeAt(j) ? 0 : 1);
      left = Math.min(swap, above + 1, left + 1);
      row[j + 1] = left;
      corner = above;
    }
  }
  return row[columns] ?? 0;
}
