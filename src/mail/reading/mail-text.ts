import type { ParsedMail } from "./parse.ts";

/** All text of a mail except that of its files. */
export function allText({ new_text, rest_text, interleaved, signature }: ParsedMail): string {
  return [interleaved ? "" : new_text, rest_text, signature].filter((text) => text !== "").join("\n\n");
}
