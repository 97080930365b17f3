import { DAMAGED, Unreadable } from "./reading.ts";

/** Steps that the patterns of the library may take over one part: some seconds. Honest parts take a thousandth. */
const MAX_STEPS = 4_000_000_000;
/** Number formats stand in such an element, and nothing but styles has one. */
const FORMATS = "numFmt";
const NAME_END = /[\s/>]/g;

/**
 * Throws `Unreadable` for a part of a workbook over which the library would take the square of a length: of the names of elements
 * everywhere, and of number formats. It cannot be ended inside of a pattern. Tags are looked for as the library does.
 */
export function refuseSlowXml(xml: string): void {
  const has_formats = xml.includes(FORMATS);
  let steps = 0;
  for (let at = xml.indexOf("<"); at >= 0; at = xml.indexOf("<", at)) {
    const skipped = endOfAside(xml, at);
    const end = skipped ?? endOfTag(xml, at);
    if (skipped === null) steps += (has_formats ? end - at : nameChars(xml, at)) ** 2;
    if (steps > MAX_STEPS) throw new Unreadable(DAMAGED);
    at = end;
  }
}

/** Returns where a comment, CDATA or an instruction ends that begins there; null for a tag. */
function endOfAside(xml: string, at: number): number | null {
  const aside = ASIDES.find(([begins]) => xml.startsWith(begins, at));
  if (aside === undefined) return null;
  const end = xml.indexOf(aside[1], at);
  return end < 0 ? xml.length : end + aside[1].length;
}

const ASIDES: [begins: string, ends: string][] = [
  ["<![CDATA[", "]]>"],
  ["<!--", "-->"],
  ["<?", "?>"],
];

/** Returns where a tag ends; a quote that is never closed is passed over. */
function endOfTag(xml: string, at: number): number {
  for (let end = at + 1; end < xml.length; end += 1) {
    const sign = xml[end];
    if (sign === ">") return end + 1;
    if (sign !== '"' && sign !== "'") continue;
    const closes = xml.indexOf(sign, end + 1);
    if (closes >= 0) end = closes;
  }
  return xml.length;
}

function nameChars(xml: string, at: number): number {
  NAME_END.lastIndex = at + 1;
  return (NAME_END.exec(xml)?.index ?? xml.length) - at;
}
