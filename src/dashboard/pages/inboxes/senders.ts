import { BRANDS, DOMAINS } from "../../../net/provider-names.ts";

/** The entries of a list of senders, as people type them or paste them from a mail program. */
export function sendersIn(text: string): string[] {
  return text.split("\n").flatMap((line) => (line.includes("<") ? pastedIn(line) : wordsIn(line)));
}

/** `Bob Builder <bob@example.net>, "Builder, Bob" <bob@example.net>`: names have no @, and their commas part nothing. */
function pastedIn(line: string): string[] {
  return line.split(/[,;]/).flatMap((piece) => {
    const [, address] = /<([^<>]*)>/.exec(piece) ?? [];
    if (address !== undefined) return wordsIn(address);
    return piece.includes("@") ? wordsIn(piece) : [];
  });
}

function wordsIn(text: string): string[] {
  return text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map((word) => (/^mailto:/i.test(word) ? word.slice("mailto:".length).split("?", 1).join("") : word));
}

/** The public mail providers of which a list has everybody, such as `gmail.com`. */
export function wholeProviders(entries: string[]): string[] {
  return entries.flatMap((entry) => {
    const domain = /^\*?@(?:\*\.)?(.*)$/.exec(entry.toLowerCase())?.[1] ?? "";
    return DOMAINS.has(domain) || BRANDS.has(domain.split(".", 1).join("")) ? [domain] : [];
  });
}
