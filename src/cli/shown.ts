import { UNSHOWN } from "../lib/one-line.ts";

const MAX_CHARS = 600;

/** Somebody else's text, fit for a terminal: one line, no controls that it would obey, and bounded. */
export function shown(text: string): string {
  const clean = text.replaceAll(UNSHOWN, "?");
  return clean.length > MAX_CHARS ? `${clean.slice(0, MAX_CHARS).toWellFormed()}…` : clean;
}
