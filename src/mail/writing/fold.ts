/** Characters two columns wide (East Asian), with their marks; a line may break behind each. */
const WIDE =
  /[\u2E80-\u9FFF\uA960-\uA97F\uAC00-\uD7FF\uF900-\uFAFF\uFF01-\uFF60][、。，．！？；：」』）】〉》]{0,4}|[^\u2E80-\u9FFF\uA960-\uA97F\uAC00-\uD7FF\uF900-\uFAFF\uFF01-\uFF60]+/g;
const HAS_WIDE = /[\u2E80-\u9FFF\uA960-\uA97F\uAC00-\uD7FF\uF900-\uFAFF\uFF01-\uFF60]/;
/** At the beginning of a line these would look like a quote or a signature. */
const NEVER_FIRST = /^(?:>|--?$)/;

/** Returns the width of a text in terminal columns. */
export function widthOf(text: string): number {
  return Bun.stringWidth(text);
}

/**
 * Returns the lines of a text, wrapped where they are longer than `columns`; a longer word, such as a URL, stays whole.
 */
export function folded(text: string, columns: number): string[] {
  return text.split("\n").flatMap((line) => (widthOf(line) <= columns ? [line] : foldedLine(line, columns)));
}

function foldedLine(line: string, columns: number): string[] {
  const lines: string[] = [];
  let now = "";
  let width = 0;
  for (const { piece, space } of piecesOf(line)) {
    const more = widthOf(piece);
    if (now !== "" && width + space.length + more > columns && !NEVER_FIRST.test(piece)) {
      lines.push(now);
      now = "";
      width = 0;
    }
    const before = now === "" ? "" : space;
    now += before + piece;
    width += before.length + more;
  }
  return [...lines, now];
}

/** Splits a line into unbreakable pieces, each with the space in front of it. */
function piecesOf(line: string): { piece: string; space: string }[] {
  return line.split(/[ \t]+/).flatMap((word) => {
    const is_apart = HAS_WIDE.test(word) && !word.includes("://");
    const pieces = is_apart ? (word.match(WIDE) ?? []) : [word];
    return pieces.map((piece, at) => ({ piece, space: at === 0 ? " " : "" }));
  });
}
