import { headOf } from "../../lib/text-length.ts";

const SHORT_CHARS = 200;
/** How much of a text is read for that: some of it may be blanks. */
export const HEAD_CHARS = 1_000;

/** The beginning of a text, as one line of a table. */
export function shortText(text: string): string {
  const line = headOf(text, HEAD_CHARS).replaceAll(/\s+/g, " ").trim();
  return line.length > SHORT_CHARS || text.length > HEAD_CHARS
    ? `${headOf(line, SHORT_CHARS - 1).toWellFormed()}…`
    : line;
}
