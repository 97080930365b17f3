/** A name and a value as they may stand in the tag of an element. */
interface Attribute {
  /** In small letters; empty where the value has none. */
  name: string;
  /** As it is written, with its character references. */
  value: string;
}

/** Blanks of HTML and XML: any other is a part of a value without quotes. */
const BLANK = /[\t\n\f\r ]/;
/** What no name of an attribute has. */
const NOT_NAME = /[\s"'<>/=]/;
const VALUE_ENDS = /[\t\n\f\r >]/g;
/** What a tag may begin behind, or go on behind, in the middle of a value without quotes. */
const PARTS = /[<"'`]/;

/**
 * Returns all that could be an attribute of HTML, SVG or XML, wherever in a text it stands: in a comment, in a script, behind
 * a tag that is torn. What begins a tag for one program is text for the next, so no tree is built: each `=` counts, and
 * what stands around it. No program can see an attribute that is not among these.
 */
export function* attributesIn(text: string): Generator<Attribute> {
  let before = { at: -1, end: -1 };
  for (let at = text.indexOf("="); at !== -1; at = text.indexOf("=", at + 1)) {
    let start = at + 1;
    while (BLANK.test(text.charAt(start))) start += 1;
    // Quotes stand behind backslashes in a text of JSON or of a program.
    let open = start;
    while (text.charAt(open) === "\\") open += 1;
    const quote = text.charAt(open);
    if (quote === '"' || quote === "'") {
      const close = text.indexOf(quote, open + 1);
      yield { name: nameBefore(text, at), value: text.slice(open + 1, close === -1 ? text.length : close) };
    } else if (start >= before.end) {
      VALUE_ENDS.lastIndex = start;
      before = { at: start, end: VALUE_ENDS.exec(text)?.index ?? text.length };
      yield { name: nameBefore(text, at), value: text.slice(start, before.end) };
    } else {
      const is_apart = PARTS.test(text.slice(before.at, at));
      before.at = at;
      if (is_apart) yield { name: nameBefore(text, at), value: text.slice(start, before.end) };
    }
  }
}

function nameBefore(text: string, at: number): string {
  let end = at;
  while (end > 0 && BLANK.test(text.charAt(end - 1))) end -= 1;
  let start = end;
  while (start > 0 && !NOT_NAME.test(text.charAt(start - 1))) start -= 1;
  return text.slice(start, end).toLowerCase();
}
