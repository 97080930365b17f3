const CLOSES = new Map([
  ["]", "["],
  [")", "("],
  ["}", "{"],
  [">", "<"],
]);
const OPENS = new Set(CLOSES.values());

/** A text without what stands in brackets of any kind, which a template or a program of some markup takes for its own. */
export function withoutAsides(text: string): string {
  const kept: string[] = [];
  const open: { sign: string; at: number }[] = [];
  const counts = new Map<string, number>();
  for (const sign of text) {
    const opened = CLOSES.get(sign);
    if (OPENS.has(sign)) {
      open.push({ sign, at: kept.length });
      counts.set(sign, (counts.get(sign) ?? 0) + 1);
    } else if (opened !== undefined && (counts.get(opened) ?? 0) > 0) {
      for (let last = open.pop(); last !== undefined; last = open.pop()) {
        counts.set(last.sign, (counts.get(last.sign) ?? 1) - 1);
        kept.length = last.at;
        if (last.sign === opened) break;
      }
    } else kept.push(sign);
  }
  return kept.join("");
}
