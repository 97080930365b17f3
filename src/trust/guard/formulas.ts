import { breaksLine, isProseKey } from "./prose.ts";

/** The beginning of a formula in every spreadsheet program. */
const EQUALS = /^[=＝]\s*[\p{L}\p{N}("'{$+\-@#[_%\\.,]/u;
/** The sign that begins one, whatever stands behind it; an encoded word (`=?`) is not one, nor is an arrow. */
const MAY_EQUAL = /^[=＝](?![?>=])/;
const EQUAL = /^[=＝]$/;
/** Characters that begin a formula in some programs, and also numbers, names and list items. */
const SIGN = /^[+\-@＋－＠]/;
/** A function call behind such a character, which only a formula has. */
const CALLS = /^[+\-@＋－＠]\s*[^\s(]*[\p{L}\p{N}_.]\(/u;
/** Functions that fetch something or start a program. */
const FETCHES =
  /(?:IMPORT(?:DATA|XML|HTML|FEED|RANGE)|WEBSERVICE|FILTERXML|IMAGE|HYPERLINK|GOOGLE(?:FINANCE|TRANSLATE)|RTD|DDE|CALL|EXEC|REGISTER(?:\.ID)?|QUERY|STOCKHISTORY)\s*\(|\|\s*['"]/i;
/** A call at the beginning of a cell, whatever the function is called: each language has names of its own. */
const CALLED = /^[=＝]\s*[\p{L}_][\p{L}\p{N}_.]*\s*\(/u;
/** The same further behind, where a blank before the bracket would be one of a sentence. */
const CALL = /[\p{L}\p{N}_.]\(/gu;
/** What a call needs in order to tell something: a text, a cell, something put together, or another call. */
const TELLS = /["&]|\$?[a-z]{1,3}\$?\d|^[^()]*[\p{L}\p{N}_.]\(/iu;
const SEPARATOR = /[,;\t|]/;
const TEXT = /"[^"]*"/g;
/** A cell with a blank behind it, by which a spreadsheet program puts what follows to it. */
const REFERENCE = /\$?[a-z]{1,3}\$?\d{1,7}\s/gi;
const OPERATOR = / ?([-+*/^&=<>%(,;@]) ?/g;
const BLANKS = /\s+/g;
const ROW = /[^\r\n]+/g;
const CELL = /[^,;\t|]+/g;

/** Returns the formula that a spreadsheet program would see in a text, or in a cell of a text that is a table. */
export function formulaIn(key: string, text: string): string | undefined {
  const bare = bareCell(text);
  const prose = isProseKey(key);
  // A text of several lines that begins with `=` is a heading (`= Title`) or a list, unless it begins with a call.
  if (beginsFormula(bare) && !(prose && breaksLine(bare) && !isCall(bare))) return bare;
  if (SIGN.test(bare) && (CALLS.test(bare) || (lastCall(bare) > 0 && isCall(bare))) && !prose) return bare;
  return formulaInTable(text);
}

/** Whether a cell is a formula by its beginning, or by a call behind a sign of which it is not known that a formula can begin so. */
function beginsFormula(bare: string): boolean {
  return EQUALS.test(bare) || (MAY_EQUAL.test(bare) && isCall(bare));
}

function formulaInTable(text: string): string | undefined {
  const rows = [...text.matchAll(ROW)];
  const is_table = rows.filter(([row]) => SEPARATOR.test(row)).length > 1;
  const fetches = FETCHES.test(text);
  const last = lastCall(text);
  for (const { 0: row, index: at } of rows) {
    const last_in_row = lastCall(row);
    for (const { 0: cell, index } of row.matchAll(CELL)) {
      // A quoted cell may go on in the next line, and what begins a line may be an item of a list.
      const calls_behind = cell.trimStart().startsWith('"') ? last > at + index : last_in_row > index;
      if (isFormula(cell, { fetches, calls_behind, may_be_item: !is_table && index === 0 }))
        return bareCell(cell);
    }
  }
  return undefined;
}

interface Around {
  /** Whether the text has a function that fetches something. */
  fetches: boolean;
  /** Whether something is called in the cell, or behind it where it may go on. */
  calls_behind: boolean;
  may_be_item: boolean;
}

function isFormula(cell: string, around: Around): boolean {
  const bare = bareCell(cell);
  return SIGN.test(bare) ? isSigned(cell, bare, around) : isEqual(cell, bare, around);
}

/** Whether a cell is one that begins as formulas do in every program. */
function isEqual(cell: string, bare: string, { fetches, calls_behind }: Around): boolean {
  if (EQUALS.test(bare)) return fetches || calls_behind || CALLED.test(bare) || isCall(bare);
  return MAY_EQUAL.test(bare) && (FETCHES.test(bare) || isCall(bare) || (calls_behind && goesOn(cell)));
}

/** Whether a cell is one that begins with another sign. */
function isSigned(cell: string, bare: string, { fetches, calls_behind, may_be_item }: Around): boolean {
  if (fetches && FETCHES.test(bare)) return true;
  return !may_be_item && (isOpen(cell) ? calls_behind : isCall(bare));
}

/** Where the last call in a text stands; -1 where there is none. */
function lastCall(text: string): number {
  let last = -1;
  for (const { index } of text.matchAll(CALL)) last = index;
  return last;
}

/** Whether what seems to end a cell may be in its quotes, or may be an argument that is left out. */
function goesOn(cell: string): boolean {
  return isOpen(cell) || EQUAL.test(bareCell(cell));
}

/** Whether a cell ends within quotes, so that what seems to end it does not. */
function isOpen(cell: string): boolean {
  return cell.split('"').length % 2 === 0;
}

/** Whether a cell with a sign at its beginning calls something: no two words stand before the call, as in a sentence. */
function isCall(bare: string): boolean {
  const [before = "", ...behind] = bare.replaceAll(BLANKS, " ").replaceAll(OPERATOR, "$1").split(CALL);
  return (
    behind.length > 0 &&
    !/\s/.test(before.replaceAll(TEXT, "").replaceAll(REFERENCE, "")) &&
    TELLS.test(bare.slice(bare.indexOf("(") + 1))
  );
}

/** Returns a cell without the spaces, quotes and characters without a shape that a spreadsheet program removes. */
function bareCell(cell: string): string {
  return cell.replace(/^[\s"'\p{Cc}\p{Cf}]+/u, "").trimEnd();
}
