import { oneLine } from "../lib/one-line.ts";
import { stripHiddenCharacters } from "../trust/own-words/hidden-characters.ts";

const MAX_NAME_CHARS = 120;
/** A media type (RFC 6838 §4.2). */
const TYPE = /^[a-z0-9][\w.+!#$&^-]{0,126}\/[a-z0-9][\w.+!#$&^-]{0,126}/;

/**
 * Returns a file name in a form safe inside a sentence, because its sender chose it. A long one keeps its beginning and
 * its extension.
 */
export function shownName(filename: string): string {
  const name = oneLine(stripHiddenCharacters(filename.slice(0, 10 * MAX_NAME_CHARS)).text) || "attachment";
  if (name.length <= MAX_NAME_CHARS) return name;
  return `${name.slice(0, MAX_NAME_CHARS - 20)}…${name.slice(-19)}`.toWellFormed();
}

/** Returns the media type that the sender declared, without parameters. */
export function shownType(content_type: string): string {
  return TYPE.exec(content_type.trim().toLowerCase())?.[0] ?? "application/octet-stream";
}
