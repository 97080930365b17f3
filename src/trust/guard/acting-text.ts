import { asRead } from "./as-read.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
import { breaksLine, isLineKey } from "./prose.ts";

/**
 * Returns what a text in the arguments of somebody else's tool would do where it is put, as the end of a sentence: more than to
 * be read there. Undefined if there is none.
 */
export function actingText(args: Record<string, unknown>): string | undefined {
  for (const given of textsIn(args)) {
    // Of such a call nobody can tell where it goes, and it has been objected to for that.
    if (given === TOO_MUCH) return undefined;
    const { key, value } = given;
    if (typeof value === "string" && isLineKey(key) && (breaksLine(value) || breaksLine(asRead(value))))
      return `write more than one line as ${JSON.stringify(key)}, which has one: a program may take the next for a field that sends it to somebody. Write it in one line, and the rest elsewhere.`;
  }
  return undefined;
}
