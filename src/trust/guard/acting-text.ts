import { asRead } from "./as-read.ts";
import { TOO_MUCH, textsIn } from "./packed/texts.ts";
import { breaksLine, isLineKey, isProseKey } from "./prose.ts";

/**
 * Returns what a text in the arguments of somebody else's tool would do where it is put, as the end of a sentence: more than to
 * be read there. Undefined if there is none, or if the trusted text has it.
 */
export function actingText(args: Record<string, unknown>, trusted_text: string): string | undefined {
  for (const given of textsIn(args)) {
    // Nobody can tell where such a call goes, and it has been objected to for that.
    if (given === TOO_MUCH) return undefined;
    const { key, value } = given;
    if (typeof value !== "string") continue;
    if (isLineKey(key) && (breaksLine(value) || breaksLine(asRead(value))))
      return `write more than one line as ${JSON.stringify(key)}, which has one: a program may take the next for a field that sends it to somebody. Write it in one line, and the rest elsewhere.`;
    const formula = formulaIn(key, value);
    if (formula !== undefined && !trusted_text.includes(formula))
      return `write the formula ${formula.slice(0, MAX_SHOWN_CHARS)}, which stands neither in the instruction nor in a context of yours: in a table it could fetch something, and tell what stands beside it. Write it there if it is meant, or have its value written.`;
  }
  return undefined;
}

const MAX_SHOWN_CHARS = 100;
/** The beginning of a formula in every table program; that of an encoded word is none. */
const EQUALS = /^[=＝]\s{0,9}[\p{L}\p{N}("'{$+\-@#[_%\\]/u;
/** Signs with which one begins in some, and which begin numbers, names and items of lists as well. */
const SIGN = /^[+\-@＋－＠]/;
/** What only a formula has behind them: a function with its arguments. */
const CALLS = /^[+\-@＋－＠]\s{0,9}[^\s(]{0,60}[\p{L}\p{N}_.]\(/u;
/** Functions that fetch, or start something. */
const FETCHES =
  /(?:IMPORT(?:DATA|XML|HTML|FEED|RANGE)|WEBSERVICE|FILTERXML|IMAGE|HYPERLINK|GOOGLE(?:FINANCE|TRANSLATE)|RTD|DDE|CALL|EXEC|REGISTER(?:\.ID)?|QUERY|STOCKHISTORY)\s{0,9}\(|\|\s{0,9}['"]/i;
const CELL_END = /[\r\n,;\t|]/;

/** The formula that a table program would take a text for, or a cell of one that is written down as a table. */
function formulaIn(key: string, text: string): string | undefined {
  const bare = bareCell(text);
  const prose = isProseKey(key);
  // What begins so over several lines is a heading (`= Title`), or a list.
  if (EQUALS.test(bare) && !(prose && breaksLine(bare))) return bare;
  if (SIGN.test(bare) && CALLS.test(bare) && !prose) return bare;
  if (!FETCHES.test(text)) return undefined;
  return text
    .split(CELL_END)
    .map(bareCell)
    .find((cell) => EQUALS.test(cell) || (SIGN.test(cell) && FETCHES.test(cell)));
}

/** Without the blanks and quotes that a table program takes off. */
function bareCell(cell: string): string {
  return cell.replace(/^[\s"'\uFEFF\u200B]+/, "").trimEnd();
}
