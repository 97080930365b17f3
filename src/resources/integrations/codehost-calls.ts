import { withoutCommands } from "./codehost-text.ts";

/**
 * An invisible character that no name at a code host holds; bots that look for `@name` in the source find no name
 * either.
 */
const BREAK = "\u200B";
/** `@` as Markdown reads it: the sign, or an entity that becomes one before names are looked for. */
const AT = String.raw`(?:@|&(?:#0{0,5}64|#x0{0,4}40|commat);)`;
const NAME = String.raw`[A-Za-z0-9_][\w.-]{0,255}(?:\/[\w.-]{1,255}){0,20}`;
/**
 * An `@` that calls somebody; behind a letter or a digit, it belongs to a mail address. What is no name may become
 * one: `@&#97;da`.
 */
const CALLS = new RegExp(`(?<![A-Za-z0-9])(${AT})(?=\\S)(${NAME})?`, "gi");
const NAMED = new RegExp(`(?<![\\w.@/-])@(${NAME})`, "g");
/** What may go on behind a name, so that it is another name. */
const GOES_ON = /^[\w&<\\/-]/;
/** A command for bots, wherever it stands. A path such as `/usr/bin` is none: it goes on behind its first name. */
const ORDER = /(?<=^|\s)(?=[/!][A-Za-z][\w-]{0,50}(?![\w/.-]))/g;

/**
 * Changes a text for a code host so that it calls nobody whom the trusted text does not name with an `@`, and begins
 * no line with a command. Both look as they were written, and have no effect.
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

/** A name without the full stop of a sentence behind it. */
function plainName(name: string): string {
  let end = name.length;
  while (/[.-]/.test(name.charAt(end - 1))) end -= 1;
  return name.slice(0, end).toLowerCase();
}
