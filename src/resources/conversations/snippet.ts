import { stripHiddenCharacters } from "../../trust/own-words/hidden-characters.ts";

const SNIPPET_CHARS = 200;
/** The most of a reply that is looked at: white space and marks are longer than what they leave. */
const LOOKED_AT_CHARS = 4 * SNIPPET_CHARS;

/** The beginning of a reply in one line of plain text. */
export function snippetOf(reply: string): string {
  const words = withoutMarks(reply.slice(0, LOOKED_AT_CHARS));
  const line = stripHiddenCharacters(words).text.replaceAll(/\s+/g, " ").trim();
  // The cut may have gone through the middle of a character.
  return line.slice(0, SNIPPET_CHARS).replace(/[\ud800-\udbff]$/, "");
}

/** A text without the marks of its Markdown, cells of tables with commas. */
export function withoutMarks(markdown: string): string {
  return (
    markdown
      // The line between the head of a table and its rows, or across the page.
      .replaceAll(/^[ \t|:-]+$/gm, "")
      .replaceAll(/^[ \t]*\|.*$/gm, withCommas)
      .replaceAll(/^[ \t]*(```.*|#{1,6}[ \t]|>[ \t]?|[-*+][ \t]|\d+[.)][ \t])/gm, "")
      .replaceAll(/!?\[([^[\]]*)\]\([^()]*\)/g, "$1")
      .replaceAll(/\*\*|~~|`/g, "")
      // A single mark is taken out only where it stands around words: 2 * 3 and snake_case keep theirs.
      .replaceAll(/(?<!\w)[*_]+(?=\S)|(?<=\S)[*_]+(?!\w)/g, "")
  );
}

/** A row of a table as a list of what its cells say. */
function withCommas(row: string): string {
  const cells = row.split("|").map((cell) => cell.trim());
  return cells.filter((cell) => cell !== "").join(", ");
}
