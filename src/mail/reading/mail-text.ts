import type { MailAttachment, ParsedMail } from "./parse.ts";

/** Returns all text of a mail except that of its files. */
export function allText({ new_text, rest_text, interleaved, signature }: ParsedMail): string {
  return [interleaved ? "" : new_text, rest_text, signature].filter((text) => text !== "").join("\n\n");
}

/** Returns the files of a mail without the pictures in its signature, which its author sends with every mail. */
export function filesOf({ attachments }: Pick<ParsedMail, "attachments">): MailAttachment[] {
  return attachments.filter(({ of_signature }) => of_signature !== true);
}

/** Returns the sender's own words, the first line of which stands above all others; empty where words of others may stand above it. */
export function openingOf({ new_text, interleaved, below_marks }: ParsedMail): string {
  return interleaved || below_marks ? "" : new_text.trim();
}
