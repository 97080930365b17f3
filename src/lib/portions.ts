/** Read, and turned into JSON, in a few milliseconds: meanwhile everybody else waits. */
export const PORTION_BYTES = 1_048_576;

/** Rows in their order, in portions that hold so much together, or one row that holds more. */
export function portionsOf<Row extends { bytes: number }>(rows: Row[]): Row[][] {
  const portions: Row[][] = [];
  let room = 0;
  for (const row of rows) {
    if (portions.length === 0 || row.bytes > room) {
      portions.push([]);
      room = PORTION_BYTES;
    }
    portions.at(-1)?.push(row);
    room -= row.bytes;
  }
  return portions;
}
