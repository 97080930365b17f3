import { normalForm } from "../../lib/normal-form.ts";
/** The longest name, so that the path stays short enough for every system. */
const MAX_CHARS = 100;
/** Names that no file may have on Windows, with or without an ending. */
const RESERVED = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/**
 * Returns a sender's file name in a form that is safe on every system and unique in its folder: `taken` holds the names
 * used there, in lower case.
 */
export function safeFileName(given: string, taken: Set<string>): string {
  const plain = normalForm("NFC", given.toWellFormed())
    .replaceAll(/[\p{C}<>:"/\\|?*]/gu, "_")
    .replace(/^[. ]+/, "_")
    .replace(/(?<![. ])[. ]+$/, "");
  const [, stem = "", ending = ""] = /^(.*?)(\.[A-Za-z0-9]{1,10})?$/s.exec(plain) ?? [];
  // The cut may have split a surrogate pair.
  const short = stem.slice(0, MAX_CHARS).replace(/[\ud800-\udbff]$/, "") || "file";
  const base = RESERVED.test(short) ? `_${short}` : short;
  let name = `${base}${ending}`;
  for (let count = 2; taken.has(name.toLowerCase()); count += 1) name = `${base} (${count})${ending}`;
  taken.add(name.toLowerCase());
  return name;
}
