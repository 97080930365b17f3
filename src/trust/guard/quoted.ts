/** Pairs of opening and closing quotation marks in many languages. */
const PAIRS: [open: string, close: string][] = [
  ["`", "`"],
  ['"', '"'],
  ["'", "'"],
  ["\u2018", "\u2019"],
  ["\u2019", "\u2019"],
  ["\u201A", "\u2018\u2019"],
  ["\u201C", "\u201D"],
  ["\u201D", "\u201D"],
  ["\u201E", '\u201C\u201D"'],
  ["\u300C", "\u300D"],
  ["\u300E", "\u300F"],
  ["\uFF02", "\uFF02"],
];
/** Guillemets have spaces inside in French; in German they point the other way round. */
const GUILLEMETS = ["\u00AB\u00BB", "\u2039\u203A"];
const GUILLEMET = /[\u00AB\u00BB\u2039\u203A]/;
const MAX_LINE_CHARS = 1_000;

/** Returns whether a part of a text is all that stands between quotation marks or backticks. */
export function isQuoted(text: string, from: number, to: number): boolean {
  const before = text.slice(Math.max(0, from - MAX_LINE_CHARS), from);
  const after = text.slice(to, to + 4);
  // Punctuation of the sentence may be inside.
  const close = /^[.,;:!?]?(.)/su.exec(after)?.[1] ?? "";
  const open = before.slice(-1);
  const single = /['\u2019]/.test(open) && /[\p{L}\p{N}]$/u.test(before.slice(0, -1));
  if (!single && PAIRS.some((pair) => pair[0] === open && close !== "" && pair[1].includes(close)))
    return true;
  return isBetweenGuillemets(before, after);
}

function isBetweenGuillemets(before: string, after: string): boolean {
  const open = before.trimEnd().slice(-1);
  const close = after
    .trimStart()
    .replace(/^[.,;:!?]\s?/, "")
    .charAt(0);
  const line = before.slice(before.lastIndexOf("\n") + 1);
  return GUILLEMETS.some((pair) => {
    if (open === "" || close === "" || open === close || !pair.includes(open)) return false;
    // The first guillemet of the line shows which way they point.
    const first = pair.includes(GUILLEMET.exec(line)?.[0] ?? "-") ? GUILLEMET.exec(line)?.[0] : open;
    return pair.includes(close) && open === first;
  });
}
