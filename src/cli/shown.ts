import { UNSHOWN } from "../lib/one-line.ts";

const MAX_CHARS = 600;

/** Returns text from outside in a form fit for a terminal: one line, no control characters, limited length. */
export function shown(text: string): string {
  const clean = text.replaceAll(UNSHOWN, "?");
  return clean.length > MAX_CHARS ? `${clean.slice(0, MAX_CHARS).toWellFormed()}…` : clean;
}
