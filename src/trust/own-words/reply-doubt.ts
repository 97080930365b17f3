import { isDatedOrAddressed } from "./attribution.ts";
import { mayBeWrapped } from "./marker-lines.ts";
import { firstMarker, isQuoted, type Marker } from "./reply-markers.ts";
import { lettersOf } from "./two-texts.ts";

/** Characters of doubtful text that are examined. */
const MAX_CHARS = 2_000;
/** Lines within which an author's name follows a separator line, and quoted lines follow a title. */
const MAX_LINES_TO_NAME = 3;
const MAX_LINES_TO_QUOTE = 12;

/** Why text that may be the sender's own is not counted as such. */
export type Doubt =
  | "below_quote"
  | "touches_quote"
  | "below_line"
  | "like_fields"
  | "below_signature"
  | "two_texts"
  | "further_part"
  | "too_long";

/** Text that may be the sender's own, although it is not counted as such. */
export interface Doubtful {
  why: Doubt;
  text: string;
}

export function doubtfulIf(why: Doubt, lines: readonly string[]): Doubtful | null {
  const text = lines.join("\n").slice(0, MAX_CHARS);
  return lettersOf(text) === "" ? null : { why, text };
}

/**
 * Returns the doubtful text at a marker: `end` is where the text not counted as the sender's ends, `empty` whether
 * nothing above is counted.
 */
export function doubtAt(
  lines: readonly string[],
  marker: Marker,
  { end, empty, fresh }: { end: number; empty: boolean; fresh: boolean },
): Doubtful | null {
  if (marker.kind === "signature") return null;
  if (marker.kind === "forward") return doubtAtForward(lines, marker, { end, empty, fresh });
  const touched = marker.touched ? doubtfulIf("touches_quote", lines.slice(marker.line, marker.quote)) : null;
  if (touched !== null) return touched;
  const is_marked = isQuoted(lines[marker.quote] ?? "");
  return empty || is_marked || namesNobody(lines, marker) ? belowQuote(lines, marker.quote, end) : null;
}

/** Returns whether an attribution has neither date nor address ("Somebody wrote:"): the sender may have written it. */
function namesNobody(lines: readonly string[], { line, quote }: Extract<Marker, { kind: "quote" }>): boolean {
  const attribution = lines.slice(line, quote).join(" ").trim();
  return attribution !== "" && !isDatedOrAddressed(attribution);
}

function doubtAtForward(
  lines: readonly string[],
  { line, by }: Extract<Marker, { kind: "forward" }>,
  { end, empty, fresh }: { end: number; empty: boolean; fresh: boolean },
): Doubtful | null {
  if (by !== null && !isAttributed(lines, { line, by }, fresh))
    return doubtfulIf(by === "fields" ? "like_fields" : "below_line", lines.slice(line, end));
  const quote = lines.slice(line, line + MAX_LINES_TO_QUOTE).findIndex(isQuoted);
  return empty && quote !== -1 ? belowQuote(lines, line + quote, end) : null;
}

/** Returns the unmarked lines among and below quoted ones that are not the rest of a broken line. */
function belowQuote(lines: readonly string[], quote: number, end: number): Doubtful | null {
  const unmarked = lines.slice(quote, end).filter((line, index) => {
    const above = index === 0 ? "" : (lines[quote + index - 1] ?? "");
    return !isQuoted(line) && !(isQuoted(above) && mayBeWrapped(lines, quote + index));
  });
  return doubtfulIf("below_quote", unmarked);
}

/** Returns whether the text below a separator line says whose it is. Below a title that may be in any language. */
function isAttributed(
  lines: readonly string[],
  { line, by }: { line: number; by: "line" | "title" | "fields" },
  fresh: boolean,
): boolean {
  const next = firstMarker(lines, { from: line + 1, fresh });
  if (next === null || next.line > line + MAX_LINES_TO_NAME) return false;
  return isSure(next) || (by === "title" && next.kind === "forward" && next.by === "fields");
}

function isSure(marker: Marker): boolean {
  return marker.kind === "quote" || (marker.kind === "forward" && marker.by === null);
}

/** Returns whether a line of a doubtful text is among these letters. */
export function sharesLine(letters: string, text: string): boolean {
  return text.split("\n").some((line) => {
    const wanted = lettersOf(line);
    return wanted !== "" && letters.includes(wanted);
  });
}
