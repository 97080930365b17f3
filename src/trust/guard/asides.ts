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

/** What the usual languages of templates, and of style and markup, leave out or put something else in the place of. */
const TEMPLATE_MARKS: [begins: string, ends: string][] = [
  ["{#", "#}"],
  ["{%", "%}"],
  ["{{!--", "--}}"],
  ["{{", "}}"],
  ["{*", "*}"],
  ["${", "}"],
  ["<%", "%>"],
  ["<#--", "-->"],
  ["<!--", "-->"],
  ["<?", "?>"],
  ["[%", "%]"],
  ["[[", "]]"],
  ["#*", "*#"],
  ["@*", "*@"],
  ["/*", "*/"],
];

/** A text as each language of templates with marks in it takes those out, up to their own ends. */
export function withoutTemplateMarks(text: string): string[] {
  return TEMPLATE_MARKS.filter(([begins]) => text.includes(begins)).map(([begins, ends]) =>
    withoutBetween(text, begins, ends),
  );
}

function withoutBetween(text: string, begins: string, ends: string): string {
  const kept: string[] = [];
  let from = 0;
  for (let at = text.indexOf(begins); at !== -1; at = text.indexOf(begins, from)) {
    const end = text.indexOf(ends, at + begins.length);
    if (end === -1) break;
    kept.push(text.slice(from, at));
    from = end + ends.length;
  }
  return kept.join("") + text.slice(from);
}
