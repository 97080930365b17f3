/** A stretch of words of an HTML mail. */
export interface Region {
  own: boolean;
  lines_to_quote: number | null;
  parts: string[];
  /** Line ends just written, counted up to 2; the beginning counts as 2. */
  breaks: number;
}

export function regionFor(own: boolean): Region {
  return { own, lines_to_quote: null, parts: [], breaks: 2 };
}

export function append(region: Region, piece: string): void {
  region.parts.push(piece);
  region.breaks = 0;
}

/** Makes sure that at least `wanted` line ends stand before what follows. */
export function breakLines(region: Region, wanted: number): void {
  for (; region.breaks < wanted; region.breaks += 1) region.parts.push("\n");
}

/** Its lines, without blanks at their ends. */
export function textOf(region: Region): string {
  return region.parts
    .join("")
    .replaceAll("\u00A0", " ")
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .trim();
}
