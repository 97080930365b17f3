import { CharSet, JS, type Concatenation, type Element, type NoParent, type Quantifier } from "refa";
import { analyse } from "scslre";

/** As it stands between its slashes, and behind them. */
export interface Pattern {
  source: string;
  flags: string;
}

type Part = NoParent<Element>;
type Row = NoParent<Concatenation>;
type Loop = NoParent<Quantifier>;

/** What stands before an element of a pattern, up to where a match begins, and what has to follow. */
interface Place {
  before: readonly Part[];
  behind: readonly Part[];
}

/** Where a match may begin: behind which characters, and with what. */
interface Beginning {
  edge: CharSet;
  rest: readonly Part[];
}

/** So often is as good as without end: it multiplies the length of a text by a thousand. */
const MANY = 1_000;

/**
 * Why a pattern takes more than linear time over some text, as far as can be told; null if it does not. Either its
 * loops can take the same characters from each other, or a loop is run through again from each of many beginnings
 * that all lie in what it has run through before.
 */
export function objectionTo({ source, flags }: Pattern): string | null {
  const literal = { source, flags };
  const [report] = analyse(literal, { reportTypes: { Move: false }, assumeRejectingSuffix: false }).reports;
  if (report !== undefined)
    return `its loops can take the same characters from each other, such as ${JSON.stringify(report.character.pick)}`;
  // It is tried at one place only.
  if (flags.includes("y")) return null;
  const { expression, maxCharacter } = JS.Parser.fromLiteral(literal).parse({
    backreferences: "unknown",
    assertions: "parse",
  });
  const all = CharSet.all(maxCharacter);
  const loop = firstOf(expression.alternatives, (row) =>
    repeated(row.elements, { before: [], behind: [] }, all),
  );
  return loop === undefined
    ? null
    : `a loop is run through again from each of many beginnings, as in a text of ${sampleOf(loop, all)}`;
}

/** The first loop in a row of elements that a text can make run through the same characters again and again. */
function repeated(row: readonly Part[], place: Place, all: CharSet): Loop | undefined {
  return firstOf(row, (part, at) => {
    const before = [...place.before, ...row.slice(0, at)];
    const behind = [...row.slice(at + 1), ...place.behind];
    if (part.type === "Quantifier") return repeatedLoop(part, { before, behind }, all);
    if (part.type === "Alternation")
      return firstOf(part.alternatives, ({ elements }) => repeated(elements, { before, behind }, all));
    if (part.type !== "Assertion") return undefined;
    // What is only looked at is not used up: the next beginning may lie inside of it, though this one succeeds.
    const inside = { before: part.kind === "ahead" ? before : [], behind: [part] };
    return firstOf(part.alternatives, ({ elements }) => repeated(elements, inside, all));
  });
}

function repeatedLoop(loop: Loop, { before, behind }: Place, all: CharSet): Loop | undefined {
  if (loop.max >= MANY && behind.some(mayFail) && runsAgain(loop, before, all)) return loop;
  // Other rounds of it may come before a round, and after it.
  const others: Part[] = loop.max > 1 ? [{ ...loop, min: 0 }] : [];
  const inside = { before: [...before, ...others], behind: [...others, ...behind] };
  return firstOf(loop.alternatives, ({ elements }) => repeated(elements, inside, all));
}

/** Whether all that stands before a loop can stand inside of what the loop takes as well. */
function runsAgain(loop: Loop, before: readonly Part[], all: CharSet): boolean {
  const taken = charactersOf(loop, all);
  return beginnings({ edge: all, rest: before }, all).some(
    ({ edge, rest }) => !edge.isDisjointWith(taken) && rest.every((part) => canBe(part, taken)),
  );
}

/** Takes what is asked of the character before a match from the front of its elements. */
function beginnings({ edge, rest }: Beginning, all: CharSet): Beginning[] {
  const [first, ...others] = rest;
  if (first?.type === "Alternation")
    return first.alternatives.flatMap(({ elements }) =>
      beginnings({ edge, rest: [...elements, ...others] }, all),
    );
  if (first?.type !== "Assertion") return [{ edge, rest }];
  return beginnings(
    { edge: first.kind === "behind" ? edge.intersect(edgeOf(first, all)) : edge, rest: others },
    all,
  );
}

function edgeOf({ alternatives, negate }: Extract<Part, { type: "Assertion" }>, all: CharSet): CharSet {
  const single = alternatives.flatMap(({ elements }) => {
    const [only, more] = elements;
    return more === undefined && only?.type === "CharacterClass" ? [only.characters] : [];
  });
  const edge = CharSet.empty(all.maximum).union(...single);
  if (negate) return edge.negate();
  return single.length === alternatives.length ? edge : all;
}

/** Whether some text of these characters alone matches. */
function canBe(part: Part, characters: CharSet): boolean {
  const some = (rows: readonly Row[]): boolean =>
    rows.some(({ elements }) => elements.every((inner) => canBe(inner, characters)));
  if (part.type === "CharacterClass") return !part.characters.isDisjointWith(characters);
  if (part.type === "Alternation") return some(part.alternatives);
  if (part.type === "Quantifier") return part.min === 0 || some(part.alternatives);
  return true;
}

/** Whether there is anything that may not match: a loop without anything behind it ends where it ends. */
function mayFail(part: Part): boolean {
  const some = (rows: readonly Row[]): boolean => rows.every(({ elements }) => elements.some(mayFail));
  if (part.type === "Alternation") return some(part.alternatives);
  if (part.type === "Quantifier") return part.min > 0 && some(part.alternatives);
  return true;
}

function charactersOf(part: Part, all: CharSet): CharSet {
  if (part.type === "CharacterClass") return part.characters;
  if (part.type === "Assertion") return CharSet.empty(all.maximum);
  if (part.type === "Unknown") return all;
  const inner = part.alternatives.flatMap(({ elements }) => elements.map((one) => charactersOf(one, all)));
  return CharSet.empty(all.maximum).union(...inner);
}

function sampleOf(loop: Loop, all: CharSet): string {
  const { ranges } = charactersOf(loop, all);
  return JSON.stringify(String.fromCodePoint(ranges.at(-1)?.min ?? 0));
}

function firstOf<Item, Found>(
  items: readonly Item[],
  find: (item: Item, at: number) => Found | undefined,
): Found | undefined {
  for (const [at, item] of items.entries()) {
    const found = find(item, at);
    if (found !== undefined) return found;
  }
  return undefined;
}
