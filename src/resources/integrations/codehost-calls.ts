import { withoutCommands } from "./codehost-text.ts";

/** Nobody sees it, and no name of a code host holds it; bots that look for `@name` in the source find nothing either. */
const BREAK = "\u200B";
/** As Markdown reads it: by itself, or as an entity that becomes one before names are looked for. */
const AT = String.raw`(?:@|&(?:#0{0,5}64|#x0{0,4}40|commat);)`;
const NAME = String.raw`[A-Za-z0-9_][\w.-]{0,255}(?:\/[\w.-]{1,255}){0,20}`;
/** Behind a letter or a digit it is one of an address of mail. What is no name may become one: `@&#97;da`. */
const CALLS = new RegExp(`(?<![A-Za-z0-9])(${AT})(?=\\S)(${NAME})?`, "gi");
const NAMED = new RegExp(`(?<![\\w.@/-])@(${NAME})`, "g");
/** Behind a name, what may make another one of it. */
const GOES_ON = /^[\w&<\\/-]/;
/** A word that bots take orders by, wherever they look for it. A path goes on behind its first name. */
const ORDER = /(?<=^|\s)(?=[/!][A-Za-z][\w-]{0,50}(?![\w/.-]))/g;

/**
 * A text for a code host that calls nobody whom the trusted text does not name with an `@`, and begins no line with a
 * command: both are shown as they were written, and done nothing about.
 */
export function withoutCalls(text: string, trusted_text: string): string {
  const named = new Set(Array.from(trusted_text.matchAll(NAMED), ([, name = ""]) => plainName(name)));
  const uncalled = text.replaceAll(CALLS, (whole, at: string, name: string | undefined, offset: number) => {
    const behind = text.slice(offset + whole.length, offset + whole.length + 1);
    const is_named = name !== undefined && named.has(plainName(name)) && !GOES_ON.test(behind);
    return is_named ? whole : `${at}${BREAK}${name ?? ""}`;
  });
  return withoutCommands(uncalled).replaceAll(ORDER, "\\");
}

/** Without the stop of a sentence. */
function plainName(name: string): string {
  let end = name.length;
  while (/[.-]/.test(name.charAt(end - 1))) end -= 1;
  return name.slice(0, end).toLowerCase();
}
