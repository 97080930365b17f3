import { setImmediate } from "node:timers/promises";

/** Rows of a page. A page of long rows holds only their lengths, and the texts are read in portions. */
const ROWS = 20;

/**
 * Yields rows page by page, each read when it is needed; `find` reads what comes after a row. Before each page other
 * work gets a turn: the database runs on this thread, and a fast reader would never let go of it.
 */
export async function* pagesOf<Row>(
  find: (after: Row | undefined, limit: number) => Promise<Row[]>,
): AsyncGenerator<Row[]> {
  let page: Row[] = [];
  do {
    await setImmediate();
    page = await find(page.at(-1), ROWS);
    if (page.length > 0) yield page;
  } while (page.length === ROWS);
}

/** Yields one line for each row. */
export async function* linesOf<Row>(
  pages: AsyncIterable<Row[]>,
  lineOf: (row: Row) => string,
): AsyncGenerator<Uint8Array> {
  for await (const rows of pages) yield Buffer.from(rows.map((row) => `${lineOf(row)}\n`).join(""));
}
