/** How long a run of blanks may be: longer ones mean nothing to anybody. */
const MOST = 100;

/**
 * Cuts each long run of blanks down to one. Libraries look for blanks by patterns that take the square of a run, and neither a thread
 * nor anything else can be ended inside of a pattern.
 */
export function withShortBlanks(text: string): string {
  return text.replaceAll(/\s+/g, (run) => (run.length <= MOST ? run : run.includes("\n") ? "\n" : " "));
}
