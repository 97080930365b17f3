import { asRead } from "./as-read.ts";
import { formulaIn } from "./formulas.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
import { loadsByBeingShown } from "./loads.ts";
import { shownIn } from "./shown-values.ts";
import { standsBetween } from "./stands-between.ts";
import { breaksLine, isLineKey, isProseKey } from "./prose.ts";

/**
 * Returns what a text in an external tool's arguments would do by itself where it is put, as the end of a sentence;
 * undefined if there is none, or if the trusted text contains it.
 */
export function actingText(args: Record<string, unknown>, trusted_text: string): string | undefined {
  for (const given of textsIn(args)) {
    // Such a call was already refused, because its destination cannot be determined.
    if (given === TOO_MUCH) return undefined;
    const { key, value } = given;
    if (typeof value !== "string") continue;
    if (isLineKey(key) && (breaksLine(value) || breaksLine(asRead(value))))
      return `write more than one line as ${JSON.stringify(key)}, which has one: a program may take the next for a field that sends it to somebody. Write it in one line, and the rest elsewhere.`;
    const command = isProseKey(key) ? commandLineIn(value, trusted_text) : undefined;
    if (command !== undefined)
      return `write the line ${JSON.stringify(command.slice(0, MAX_SHOWN_CHARS))}, which stands neither in the instruction nor in a context of yours: a line that begins so is a command to some programs, as to GitLab. Write other words before it, or write it there if it is meant.`;
    const shown = actingWhereShown(value, trusted_text);
    if (shown !== undefined) return shown;
    const formula = formulaIn(key, value);
    if (formula !== undefined && !hasWhole(trusted_text, formula))
      return `write the formula ${formula.slice(0, MAX_SHOWN_CHARS)}, which stands neither in the instruction nor in a context of yours: in a table it could fetch something, and tell what stands beside it. Write it there if it is meant, or have its value written.`;
  }
  return undefined;
}

/** Returns what a text would do where it is shown as HTML, and that no address says where it would go. */
function actingWhereShown(text: string, trusted_text: string): string | undefined {
  const { runs, hides, unread } = shownIn(text);
  if (runs !== undefined && !trusted_text.includes(runs))
    return `write ${JSON.stringify(runs)}, which runs by itself where it is shown as HTML and could send what stands beside it anywhere. Write it without that.`;
  if (unread !== undefined)
    return `write ${JSON.stringify(unread)}, in which so much lies in other values that it cannot be told what it loads. Write it in a plainer way.`;
  return hides === undefined || trusted_text.includes(hides) || !loadsByBeingShown(text)
    ? undefined
    : `write ${JSON.stringify(hides)}, which loads something where it is shown, from no address that can be judged. Write it without that, or with the address itself.`;
}

const MAX_SHOWN_CHARS = 100;
const LINE_ENDS = /[\n\r\v\f\u0085\u2028\u2029]/;
/** A command to the program that keeps the text (GitLab's quick actions, bots), or text of elsewhere (`::include`). */
const COMMAND_LINE = /^(?:\/[a-z][a-z0-9_-]{0,40}(?:\s|$)|::include)/i;

/** Returns a line that a program would carry out where it is put, unless the trusted text has it. */
function commandLineIn(text: string, trusted_text: string): string | undefined {
  return text
    .split(LINE_ENDS)
    .map((line) => line.trim())
    .find((line) => COMMAND_LINE.test(line) && !hasWhole(trusted_text, line));
}

/** Whether a text has these words as a whole: `/merge` is none of the words of an address with `/merge_requests`. */
function hasWhole(text: string, words: string): boolean {
  return standsBetween(text, words, {
    before: /[\p{L}\p{N}_/.-]/u,
    after: /^(?:$|[\s.,;:!?)"'`»”])/u,
  });
}
