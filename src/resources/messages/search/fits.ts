import { once } from "../../../lib/once.ts";
import { folded, wordsIn } from "../../../lib/split-words.ts";
import { FIELDS_OF, indexWords, type TextField } from "./expression.ts";
import type { SearchQuery, Term } from "./query.ts";

/** What is known of a message in each field; without a field, nothing is found in it. */
export type Fields = Partial<Record<TextField, string>>;

/** From where to where something was found in a text. */
export type Span = [from: number, to: number];

/** Whether a message is one that the index would find, going by these fields. */
export function fitsQuery({ terms, without }: SearchQuery, fields: Fields): boolean {
  const texts = new Map<TextField, FoldedText>();
  const standsIn = (term: Term, name: TextField): boolean =>
    spansIn(
      keep(texts, name, () => foldedText(fields[name] ?? "")),
      term,
      1,
    ).length > 0;
  const stands = (term: Term) => FIELDS_OF[term.in ?? "all"].some((name) => standsIn(term, name));
  return terms.every(stands) && !without.some(stands);
}

function keep<Value>(kept: Map<TextField, Value>, name: TextField, make: () => Value): Value {
  const value = kept.get(name) ?? make();
  kept.set(name, value);
  return value;
}

/** Where a search has found something in a field, in order, `count` spans at most of each term. */
export function spansOf({ terms }: SearchQuery, field: TextField, text: string, count: number): Span[] {
  const looked_for = terms.filter((term) => FIELDS_OF[term.in ?? "all"].some((name) => name === field));
  if (looked_for.length === 0) return [];
  const shown = foldedText(text);
  const found = looked_for.flatMap((term) => spansIn(shown, term, count));
  return joined(found.sort(([one], [other]) => one - other));
}

interface Found {
  word: string;
  from: number;
  to: number;
}

interface FoldedText {
  letters: string;
  words: () => Found[];
}

function foldedText(text: string): FoldedText {
  const letters = folded(text);
  const words = once(() =>
    Array.from(wordsIn(text), ({ text: word, from, to }) => ({ word: folded(word), from, to })),
  );
  return { letters, words };
}

function spansIn({ letters, words: read }: FoldedText, term: Term, count: number): Span[] {
  const wanted = indexWords(term).map(folded);
  // Most texts do not have the letters at all, which is known much sooner than their words.
  if (!letters.includes(wanted[0] ?? "")) return [];
  const words = read();
  const last = wanted.length - 1;
  const spans: Span[] = [];
  for (let at = 0; at + last < words.length && spans.length < count; at += 1) {
    const stands = wanted.every((word, index) => {
      const here = words[at + index]?.word ?? "";
      return index === last && term.prefix ? here.startsWith(word) : here === word;
    });
    if (stands) spans.push([words[at]?.from ?? 0, words[at + last]?.to ?? 0]);
  }
  return spans;
}

/** Spans that overlap as one. */
function joined(spans: Span[]): Span[] {
  const apart: Span[] = [];
  for (const [from, to] of spans) {
    const before = apart.at(-1);
    if (before && from <= before[1]) before[1] = Math.max(before[1], to);
    else apart.push([from, to]);
  }
  return apart;
}
