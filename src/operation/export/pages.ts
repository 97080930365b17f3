import { setImmediate } from "node:timers/promises";

/** Rows of a page. Where they may be long, only their lengths are in it, and the texts are read in portions. */
const ROWS = 20;

/**
 * Returns rows page by page, each page read when it is its turn; `find` reads what comes after a row. Before each of them
 * others have theirs: the database answers on this thread, and of many rows nothing is handed on that would wait.
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

/** A line for each row. */
export async function* linesOf<Row>(
  pages: AsyncIterable<Row[]>,
  lineOf: (row: Row) => string,
): AsyncGenerator<Uint8Array> {
  for await (const rows of pages) yield Buffer.from(rows.map((row) => `${lineOf(row)}\n`).join(""));
}
