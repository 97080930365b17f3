import { MB } from "./sizes.ts";

/** The size of a portion: read and turned into JSON in a few milliseconds, during which everybody else waits. */
export const PORTION_BYTES = MB;

/** Splits rows, in their order, into portions of at most `PORTION_BYTES`; a larger row is a portion of its own. */
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
