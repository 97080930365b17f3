/** Letters two columns wide, behind each of which a line may end, with the marks that belong to them. */
const WIDE =
  /[\u2E80-\u9FFF\uA960-\uA97F\uAC00-\uD7FF\uF900-\uFAFF\uFF01-\uFF60][、。，．！？；：」』）】〉》]{0,4}|[^\u2E80-\u9FFF\uA960-\uA97F\uAC00-\uD7FF\uF900-\uFAFF\uFF01-\uFF60]+/g;
const HAS_WIDE = /[\u2E80-\u9FFF\uA960-\uA97F\uAC00-\uD7FF\uF900-\uFAFF\uFF01-\uFF60]/;
/** At the beginning of a line these would be a mark of a quote, or of a signature. */
const NEVER_FIRST = /^(?:>|--?$)/;

/** How many columns of a terminal a text takes. */
export function widthOf(text: string): number {
  return Bun.stringWidth(text);
}

/** The lines of a text, folded where they are longer than `columns`; a longer word, such as an address, stays whole. */
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

/** Parts a line into pieces that are not broken, each with the blank in front of it. */
function piecesOf(line: string): { piece: string; space: string }[] {
  return line.split(/[ \t]+/).flatMap((word) => {
    const isApart = HAS_WIDE.test(word) && !word.includes("://");
    const pieces = isApart ? (word.match(WIDE) ?? []) : [word];
    return pieces.map((piece, at) => ({ piece, space: at === 0 ? " " : "" }));
  });
}
