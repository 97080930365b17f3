import type { MarkdownIt, StateBlock, StateCore, StateInline, Token } from "markdown-it";

const DEFINITION = /^\[\^([^\s[\]]{1,40})\]:/;
const REFERENCE = /\[\^([^\s[\]]{1,40})\]/y;

/** The footnotes of one text, by name. They are numbered in the order of their first references. */
interface Notes {
  numbers: Map<string, number | null>;
  /** How many have a number. */
  numbered: number;
}

/**
 * Adds footnotes to markdown-it: `[^name]` in a text and `[^name]: words` on lines of their own. A reference becomes
 * `footnote_ref`, whose content is its number in brackets. The notes move to the end, each an inline token between
 * `footnote_open`, whose info is the number, and `footnote_close`. Notes without a reference are kept as well.
 */
export function footnotes(markdown: MarkdownIt): void {
  markdown.block.ruler.before("reference", "footnote", define, {
    alt: ["paragraph", "reference", "blockquote", "list"],
  });
  markdown.inline.ruler.before("link", "footnote_ref", refer);
  markdown.core.ruler.after("inline", "footnotes", moveDown);
}

function notesOf(state: StateBlock | StateInline | StateCore): Notes {
  state.env["notes"] ??= { numbers: new Map(), numbered: 0 } satisfies Notes;
  return state.env["notes"] as Notes;
}

function define(state: StateBlock, start: number, end: number, silent: boolean): boolean {
  const head = DEFINITION.exec(lineOf(state, start));
  if (head === null || (state.sCount[start] ?? 0) - state.blkIndent >= 4) return false;
  if (silent) return true;
  const { numbers } = notesOf(state);
  const [mark, name = ""] = head;
  const words = [lineOf(state, start).slice(mark.length)];
  let next = start + 1;
  while (next < end && goesOn(state, next)) {
    words.push(lineOf(state, next));
    next += 1;
  }
  if (!numbers.has(name)) numbers.set(name, null);
  state.push("footnote_open", "", 1).info = name;
  const inline = state.push("inline", "", 0);
  inline.content = words.join("\n").trim();
  inline.map = [start, next];
  inline.children = [];
  state.push("footnote_close", "", -1);
  state.line = next;
  return true;
}

function goesOn(state: StateBlock, line: number): boolean {
  const deeper = (state.sCount[line] ?? 0) >= state.blkIndent;
  return deeper && !state.isEmpty(line) && !DEFINITION.test(lineOf(state, line));
}

function lineOf({ src, bMarks, tShift, eMarks }: StateBlock, line: number): string {
  return src.slice((bMarks[line] ?? 0) + (tShift[line] ?? 0), eMarks[line]);
}

function refer(state: StateInline, silent: boolean): boolean {
  REFERENCE.lastIndex = state.pos;
  const [mark, name] = REFERENCE.exec(state.src) ?? [];
  const notes = notesOf(state);
  if (mark === undefined || name === undefined || !notes.numbers.has(name)) return false;
  if (!silent) state.push("footnote_ref", "", 0).content = `[${numberOf(notes, name)}]`;
  state.pos += mark.length;
  return true;
}

function numberOf(notes: Notes, name: string): number {
  const known = notes.numbers.get(name);
  if (typeof known === "number") return known;
  notes.numbered += 1;
  notes.numbers.set(name, notes.numbered);
  return notes.numbered;
}

/** Moves the notes to the end, in the order of their numbers. */
function moveDown(state: StateCore): void {
  const notes = notesOf(state);
  if (notes.numbers.size === 0) return;
  const found: { number: number; tokens: Token[] }[] = [];
  const rest: Token[] = [];
  let open: Token[] | undefined;
  for (const token of state.tokens) {
    if (token.type === "footnote_open") {
      const number = numberOf(notes, token.info);
      token.info = String(number);
      open = [];
      found.push({ number, tokens: open });
    }
    (open ?? rest).push(token);
    if (token.type === "footnote_close") open = undefined;
  }
  found.sort((one, other) => one.number - other.number);
  state.tokens = [...rest, ...found.flatMap(({ tokens }) => tokens)];
}
