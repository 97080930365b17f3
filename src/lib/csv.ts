/** Ends of a sentence, which the heading of a column does not have. */
const SENTENCE = /[.!:]$/;

/** Whether a text is CSV with a header line (RFC 4180): each line has as many fields as the first. */
export function isCsv(text: string): boolean {
  let at = 0;
  let columns = 0;
  while (at < text.length) {
    const line = lineAt(text, at);
    if (line === null || (columns > 0 && line.fields.length !== columns)) return false;
    if (columns === 0 && line.fields.some((field) => SENTENCE.test(field))) return false;
    columns = line.fields.length;
    at = line.next;
  }
  return columns > 0;
}

/** Returns the fields of a line and where the next one begins; null where its quotes are not those of CSV. */
function lineAt(text: string, from: number): { fields: string[]; next: number } | null {
  const fields: string[] = [];
  for (let at = from; ; at += 1) {
    const end = text[at] === '"' ? quotedEnd(text, at + 1) : plainEnd(text, at);
    const field = text.slice(at, end);
    if (end < 0 || (text[at] !== '"' && field.includes('"'))) return null;
    fields.push(field.trimEnd());
    if (text.startsWith("\r\n", end)) return { fields, next: end + 2 };
    if (end >= text.length || text[end] === "\n") return { fields, next: end + 1 };
    if (text[end] !== ",") return null;
    at = end;
  }
}

function plainEnd(text: string, from: number): number {
  let end = from;
  while (end < text.length && text[end] !== "," && text[end] !== "\n") end += 1;
  return text[end] === "\n" && end > from && text[end - 1] === "\r" ? end - 1 : end;
}

function quotedEnd(text: string, from: number): number {
  for (let end = text.indexOf('"', from); end >= 0; end = text.indexOf('"', end + 2))
    if (text[end + 1] !== '"') return end + 1;
  return -1;
}
