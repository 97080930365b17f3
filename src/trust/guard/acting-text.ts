import { asRead } from "./as-read.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
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
    const formula = formulaIn(key, value);
    if (formula !== undefined && !hasWhole(trusted_text, formula))
      return `write the formula ${formula.slice(0, MAX_SHOWN_CHARS)}, which stands neither in the instruction nor in a context of yours: in a table it could fetch something, and tell what stands beside it. Write it there if it is meant, or have its value written.`;
  }
  return undefined;
}

const MAX_SHOWN_CHARS = 100;
/** The beginning of a formula in every spreadsheet program; an encoded word (`=?`) is not one. */
const EQUALS = /^[=＝]\s{0,9}[\p{L}\p{N}("'{$+\-@#[_%\\]/u;
/** Characters that begin a formula in some programs, and also numbers, names and list items. */
const SIGN = /^[+\-@＋－＠]/;
/** A function call behind such a character, which only a formula has. */
const CALLS = /^[+\-@＋－＠]\s{0,9}[^\s(]{0,60}[\p{L}\p{N}_.]\(/u;
/** Functions that fetch something or start a program. */
const FETCHES =
  /(?:IMPORT(?:DATA|XML|HTML|FEED|RANGE)|WEBSERVICE|FILTERXML|IMAGE|HYPERLINK|GOOGLE(?:FINANCE|TRANSLATE)|RTD|DDE|CALL|EXEC|REGISTER(?:\.ID)?|QUERY|STOCKHISTORY)\s{0,9}\(|\|\s{0,9}['"]/i;
/** A call at the beginning of a cell, whatever the function is called: each language has names of its own. */
const CALLED = /^[=＝]\s{0,9}[\p{L}_][\p{L}\p{N}_.]{0,60}\s{0,9}\(/u;
const CELL_END = /[\r\n,;\t|]/;

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

/** Returns the formula that a spreadsheet program would see in a text, or in a cell of a text that is a table. */
function formulaIn(key: string, text: string): string | undefined {
  const bare = bareCell(text);
  const prose = isProseKey(key);
  // A text of several lines that begins with `=` is a heading (`= Title`) or a list.
  if (EQUALS.test(bare) && !(prose && breaksLine(bare))) return bare;
  if (SIGN.test(bare) && CALLS.test(bare) && !prose) return bare;
  const fetches = FETCHES.test(text);
  return text
    .split(CELL_END)
    .map(bareCell)
    .find((cell) =>
      fetches ? EQUALS.test(cell) || (SIGN.test(cell) && FETCHES.test(cell)) : CALLED.test(cell),
    );
}

/** Returns a cell without the spaces and quotes that a spreadsheet program removes. */
function bareCell(cell: string): string {
  return cell.replace(/^[\s"'\uFEFF\u200B]+/, "").trimEnd();
}
